"""What answers look like, and what requests may hold, for OpenAPI and whoever reads it. Layer 6."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ErrorAnswer(BaseModel):
    error: str = Field(examples=["'xx' is not supported; did you mean 'el'? Languages here: en, fr, el."])


class DetectedLanguage(BaseModel):
    confidence: float = Field(ge=0, le=100, examples=[93.7])
    language: str = Field(examples=["en"])


class TranslateAnswer(BaseModel):
    translatedText: str | list[str] = Field(examples=["il y a 3 jours"])
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class LanguageEntry(BaseModel):
    code: str = Field(examples=["el"])
    name: str = Field(examples=["Greek"])
    targets: list[str] = Field(examples=[["en", "fr"]])


class HealthAnswer(BaseModel):
    status: str = Field(examples=["ok"])


class SettingsLanguage(BaseModel):
    code: str
    name: str


class SettingsPair(BaseModel):
    source: SettingsLanguage
    target: SettingsLanguage


class SettingsAnswer(BaseModel):
    apiKeys: bool
    charLimit: int
    filesTranslation: bool
    frontendTimeout: int
    keyRequired: bool
    language: SettingsPair
    suggestions: bool
    supportedFilesFormat: list[str]


class OwnLanguage(BaseModel):
    code: str
    name: str
    own_name: str
    new: bool = Field(description="A pack brings it.")
    right_to_left: bool
    reads: bool = Field(description="It can be a source.")
    writes: bool = Field(description="It can be a target.")


class PackAnswer(BaseModel):
    name: str = Field(examples=["el-source"])
    side: str
    languages: list[str]
    recipe: str
    fingerprint: str
    base: str
    parameters: int
    bytes: int
    default: bool = Field(description="It is used where a request names no pack.")
    scores: dict[str, Any] = Field(description="Of its card: BLEU and chrF by direction.")
    card: dict[str, Any]


class VersionAnswer(BaseModel):
    version: int


class PackProblem(BaseModel):
    file: str
    problem: str


class ModelAnswer(BaseModel):
    engine: str = Field(examples=["ctranslate2 float32"])
    directions: list[str] = Field(
        description="Those it was asked for; others of the same packs use it too.", examples=[["el-uk"]]
    )
    source_pack: str | None = None
    target_pack: str | None = None
    bytes: int = Field(description="Of its weights in memory, besides the base's.")


class ModelProblem(BaseModel):
    direction: str
    problem: str


class PacksAnswer(BaseModel):
    version: int = Field(description="It rises with each change of the packs in service.")
    base: dict[str, Any]
    packs: list[PackAnswer]
    problems: list[PackProblem]
    models: list[ModelAnswer] = Field(description="Models of --ctranslate2, each with weights of its own.")
    model_problems: list[ModelProblem] = Field(description="Directions of --ctranslate2 that the base's model translates.")


class RouteAnswer(BaseModel):
    source: str
    target: str
    kind: str = Field(description="direct, or composed of two packs.", examples=["composed"])
    zero_shot: bool = Field(description="No pack was trained on it.")
    source_pack: str | None = None
    target_pack: str | None = None
    pivots: list[str] = Field(description="Languages that it can go through.")
    scores: dict[str, Any] | None = Field(None, description="What the packs' cards say.")


class RoutesAnswer(BaseModel):
    languages: list[OwnLanguage]
    routes: list[RouteAnswer]


class Way(BaseModel):
    text: str
    score: float | None = Field(None, description="Log-probability / length; of single sentences.")


class TextAnswer(BaseModel):
    translations: list[Way]


class OwnTranslateAnswer(BaseModel):
    source: str
    target: str
    kind: str
    pivot: str | None = None
    detected: DetectedLanguage | None = None
    texts: list[TextAnswer]


class FileAnswer(BaseModel):
    translatedFileUrl: str


class JobAnswer(BaseModel):
    id: str
    state: str = Field(description="waiting, running, done or failed.", examples=["done"])
    source: str
    target: str
    name: str
    done: int
    total: int
    error: str | None = None


TEXT = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
CODE = {"type": "string", "maxLength": 64}


def body(required: list[str], **properties: Any) -> dict[str, Any]:
    """The OpenAPI description of a body that comes as JSON or as a form; the query string does as well."""
    schema = {"type": "object", "properties": {**properties, "api_key": {"type": "string"}}, "required": required}
    example = {name: value["example"] for name, value in properties.items() if "example" in value}
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"content": {kind: {"schema": schema, "example": example} for kind in kinds}}}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    words = {
        400: "Something is missing, unknown or over a limit, or a key is needed",
        403: "The API key is not valid",
        404: "There is nothing of this name",
        408: "The body came too slowly",
        413: "The body is too large",
        429: "Too many requests; Retry-After says when to come back",
        500: "The server made a mistake",
        503: "The server is busy, starting or stopping",
    }
    return {status: {"model": ErrorAnswer, "description": words[status]} for status in statuses}


USUAL = errors(400, 403, 408, 413, 429, 500, 503)
