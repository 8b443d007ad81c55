// Errors and news, where screen readers hear them.

const error = document.getElementById("error");
const news = document.getElementById("news");
let timer = 0;

export function showError(text) {
  error.textContent = text;
  error.hidden = false;
}

export function clearError() {
  error.hidden = true;
  error.textContent = "";
}

export function tell(text) {
  news.textContent = text;
  news.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => (news.hidden = true), 12_000);
}
