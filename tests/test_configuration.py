"""Configurations: what is written is what is meant, and what cannot be meant is named with its key."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.configuration import apply_overrides, differences, from_mapping, load_yaml, to_mapping, to_yaml
from graftmt.errors import ConfigError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    name: str = "main"
    steps: int = 10
    learning_rate: float = 0.001
    directions: tuple[str, ...] = ("english-centric",)
    weights: dict[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise ConfigError(f"steps is {self.steps}; expected 0 or more.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    run: Path
    seed: int = 1
    norm: Literal["pre", "post"] = "post"
    compiled: bool = False
    note: str | None = None
    minutes: float | None = None
    stage: Stage = Stage()
    stages: tuple[Stage, ...] = ()


# PyYAML turns the rarer characters that end lines into spaces, which is its own affair.
TEXT = st.text(st.characters(exclude_categories=["Cs", "Zl", "Zp"], exclude_characters="\x85"), max_size=10)
STAGES = st.builds(
    Stage,
    name=TEXT,
    steps=st.integers(0, 10**12),
    learning_rate=st.floats(allow_nan=False),
    directions=st.lists(TEXT, max_size=3).map(tuple),
    weights=st.dictionaries(TEXT, st.floats(0, 1), max_size=3),
)
OPTIONS = st.builds(
    Options,
    run=st.from_regex(r"[a-z ./-]{1,10}", fullmatch=True).map(Path),
    seed=st.integers(),
    norm=st.sampled_from(["pre", "post"]),
    compiled=st.booleans(),
    note=st.none() | TEXT,
    minutes=st.none() | st.floats(allow_nan=False),
    stage=STAGES,
    stages=st.lists(STAGES, max_size=2).map(tuple),
)


def options(mapping: dict[str, Any]) -> Options:
    return from_mapping(Options, {"run": "runs/test", **mapping})


@given(value=OPTIONS)
def test_a_saved_configuration_loads_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: Options) -> None:
    path = tmp_path_factory.mktemp("configuration") / "resolved.yaml"
    path.write_text(to_yaml(value), encoding="utf-8")
    assert from_mapping(Options, load_yaml(path)) == value


def test_yaml_as_people_write_it(tmp_path: Path) -> None:
    path = tmp_path / "options.yaml"
    path.write_text("run: here\nminutes: 5\nstages:\n- name: 'no'\n  learning_rate: 5e-4\n- {steps: 3}\n", encoding="utf-8")
    loaded = from_mapping(Options, load_yaml(path))
    stages = (Stage(name="no", learning_rate=0.0005), Stage(steps=3))
    assert loaded == Options(run=Path("here"), minutes=5.0, stages=stages)
    assert isinstance(loaded.minutes, float)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"sead": 1}, r"unknown key 'sead'; did you mean 'seed'\? Known here: compiled, "),
        ({"stage": {"step": 1}}, r"unknown key 'stage\.step'; did you mean 'steps'\?"),
        ({"stages": [{}, {"learning_rat": 1}]}, r"unknown key 'stages\.1\.learning_rat'; did you mean 'learning_rate'\?"),
        ({"xyzzy": 1}, r"unknown key 'xyzzy'\. Known here"),
        ({7: 1}, r"unknown key '7'"),
    ],
)
def test_an_unknown_key_gets_the_nearest_known_one(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        options(mapping)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"seed": "one"}, r"seed is 'one', a str; expected int\."),
        ({"seed": 1.5}, r"seed is 1\.5, a float; expected int"),
        ({"seed": True}, r"seed is True, a bool; expected int"),
        ({"seed": None}, r"seed is None, a NoneType; expected int"),
        ({"compiled": 1}, r"compiled is 1, a int; expected bool"),
        ({"compiled": "true"}, r"compiled is 'true', a str; expected bool"),
        ({"minutes": "soon"}, r"minutes is 'soon', a str; expected float"),
        ({"minutes": True}, r"minutes is True, a bool; expected float"),
        ({"note": 3}, r"note is 3, a int; expected str"),
        ({"run": 3}, r"run is 3, a int; expected Path"),
        ({"norm": "prae"}, r"norm is 'prae'; did you mean 'pre'\? Expected one of: pre, post\."),
        ({"norm": []}, r"norm is \[\]\. Expected one of: pre, post\."),
        ({"stage": "main"}, r"stage is 'main'; expected a mapping of keys to values"),
        ({"stages": {"name": "main"}}, r"stages is .*; expected a list"),
        ({"stages": "main"}, r"stages is 'main'; expected a list"),
        ({"stages": [3]}, r"stages\.0 is 3; expected a mapping"),
        ({"stage": {"weights": [1]}}, r"stage\.weights is \[1\]; expected a mapping"),
        ({"stage": {"weights": {"fr": "much"}}}, r"stage\.weights\.fr is 'much', a str; expected float"),
        ({"stage": {"directions": ["en-fr", 3]}}, r"stage\.directions\.1 is 3, a int; expected str"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_key(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        options(mapping)


def test_norwegian_is_a_language_and_the_error_says_how_to_write_it() -> None:
    overridden = apply_overrides({"run": "here"}, ["stage.directions=[no, en]"])
    with pytest.raises(ConfigError, match=r"stage\.directions\.0 .*bool.*str\b.*YAML .*quotes"):
        from_mapping(Options, overridden)
    quoted = apply_overrides({"run": "here"}, ["stage.directions=['no', en]"])
    assert from_mapping(Options, quoted).stage.directions == ("no", "en")


def test_a_missing_key_without_a_default_is_named() -> None:
    with pytest.raises(ConfigError, match="'run' is missing and has no default"):
        from_mapping(Options, {})


def test_a_value_that_the_dataclass_refuses_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"stages\.1: steps is -1; expected 0 or more"):
        options({"stages": [{}, {"steps": -1}]})


def test_overrides_reach_every_depth_and_leave_the_original_alone() -> None:
    mapping: dict[str, Any] = {"run": "here", "stages": [{"steps": 1}, {"steps": 2, "weights": {"fr": 0.5}}]}
    overridden = apply_overrides(
        mapping,
        [
            "run=there",
            "stages.1.steps=7",
            "stages.1.weights.fr=0.25",
            "stage.name=a = b",
            "stage.directions=[en-fr, fr-en]",
            "note=",
            "minutes=5e-1",
            "compiled=true",
        ],
    )
    assert from_mapping(Options, overridden) == Options(
        run=Path("there"),
        minutes=0.5,
        compiled=True,
        stage=Stage(name="a = b", directions=("en-fr", "fr-en")),
        stages=(Stage(steps=1), Stage(steps=7, weights={"fr": 0.25})),
    )
    assert mapping == {"run": "here", "stages": [{"steps": 1}, {"steps": 2, "weights": {"fr": 0.5}}]}


def test_a_list_is_replaced_whole_or_entry_by_entry_and_the_last_override_wins() -> None:
    mapping = {"stages": [{"steps": 1}, {"steps": 2}]}
    assert apply_overrides(mapping, ["stages=[{steps: 9}]"]) == {"stages": [{"steps": 9}]}
    assert apply_overrides(mapping, ["stages.0={steps: 9}", "stages.0.steps=8"]) == {"stages": [{"steps": 8}, {"steps": 2}]}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("", "expected KEY=VALUE"),
        ("note=[1, 2", "not valid YAML"),
        ("note={a: b: c}", "not valid YAML"),
        ("stages.2.steps=1", r"'2' is not one of the 2 entries, 0 to 1"),
        ("stages.-1.steps=1", r"'-1' is not one of the 2 entries"),
        ("stages.².steps=1", r"'²' is not one of the 2 entries"),
        ("stages.first.steps=1", r"'first' is not one of the 2 entries"),
        ("run.folder=1", r"run is a value and has no key 'folder'"),
        ("stages.0.steps.more=1", r"stages\.0\.steps is a value and has no key 'more'"),
    ],
)
def test_an_override_that_cannot_be_meant_is_an_error(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        apply_overrides({"run": "here", "stages": [{"steps": 1}, {"steps": 2}]}, [override])


def test_a_misspelt_override_is_an_unknown_key() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'stage\.stepps'; did you mean 'steps'\?"):
        options(apply_overrides({}, ["stage.stepps=3"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no configuration file"),
        (b"a: [1, 2", "is not valid YAML"),
        (b"a: \xff", "is not valid YAML"),
        (b"", "holds a NoneType where a mapping"),
        (b"- 1\n- 2\n", "holds a list where a mapping"),
        (b"just words", "holds a str where a mapping"),
    ],
)
def test_a_file_that_is_no_configuration_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "options.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_yaml(path)
    assert str(path) in str(caught.value)


def test_a_folder_or_a_path_through_a_file_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a folder .*YAML file"):
        load_yaml(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot read the configuration file"):
        load_yaml(tmp_path / "file" / "options.yaml")


@given(value=OPTIONS)
def test_a_configuration_does_not_differ_from_itself(value: Options) -> None:
    assert differences(to_mapping(value), to_mapping(value)) == []


def test_differences_are_dotted_keys_with_both_values() -> None:
    old = to_mapping(Options(run=Path("here"), stages=(Stage(), Stage())))
    new = to_mapping(Options(run=Path("here"), seed=2, stages=(Stage(), Stage(steps=5, weights={"fr": 0.5}))))
    assert differences(old, new) == [
        "seed: 1 then, 2 now",
        "stages.1.steps: 10 then, 5 now",
        "stages.1.weights.fr: None then, 0.5 now",
    ]
    assert [line.partition(":")[0] for line in differences(new, old)] == ["seed", "stages.1.steps", "stages.1.weights.fr"]


def test_lists_of_plain_values_differ_as_wholes() -> None:
    assert differences({"a": [1, 2]}, {"a": [1, 3]}) == ["a: [1, 2] then, [1, 3] now"]
    assert differences({"a": [1, 2]}, {"a": [1]}) == ["a: [1, 2] then, [1] now"]
    assert differences({"b": 1}, {"a": [], "b": 1}) == []
    assert differences({"a": None}, {"a": []}) == ["a: None then, [] now"]
    assert differences({"a": {"b": 1}}, {"a": 1}) == ["a: {'b': 1} then, 1 now"]


@pytest.mark.parametrize(
    ("override", "name"),
    [
        (r'run="a\0b"', "run"),
        (r'run="\ud800"', "run"),
        (r'note="\ud800"', "note"),
        (f"seed=0x{'f' * 5000}", "seed"),
        (f"minutes=0x{'f' * 5000}", "minutes"),
        (f"stage.learning_rate=1{'0' * 400}", r"stage\.learning_rate"),
        (f"stage.steps={'9' * 5000}", r"stage\.steps"),
    ],
)
def test_values_that_nothing_can_be_done_with_are_named(override: str, name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        from_mapping(Options, apply_overrides({"run": "x"}, [override]))


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: " + "[" * 60 + "]" * 60])
def test_yaml_without_an_end_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="deep"):
        load_yaml(tmp_path / "deep.yaml")
    with pytest.raises(ConfigError, match="deep"):
        apply_overrides(apply_overrides({}, [f"x={text[3:]}"]), [])
