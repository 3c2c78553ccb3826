"""`--notify` and its like, in `run` and in `compact`: what is refused, in one line that keeps the secret."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.tables import row, table

from karpool.cli.main import cli
from karpool.cli.service import take_webhook

PATH = "T000/B000/s3cret"


@pytest.mark.parametrize("command", ["run", "compact"])
@table(
    row(
        "without encryption",
        url=f"http://hooks.example.com/{PATH}",
        said="sends to hooks.example.com without encryption",
    ),
    row("no URL", url=PATH, said="is not a URL of a web server; write https://HOST/PATH"),
)
def test_a_bad_url_is_one_line_without_the_secret(
    command: str, url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    file = tmp_path / "webhook"
    file.write_text(url + "\n")
    for result in (
        CliRunner().invoke(cli, [command, "--notify", url]),
        CliRunner().invoke(cli, [command, "--notify-file", str(file)]),
        CliRunner().invoke(cli, [command], env={"KARPOOL_NOTIFY": url}),
    ):
        assert result.exit_code == 2
        assert said in result.stderr
        assert "s3cret" not in result.output
        assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["run", "--notify-file", str(tmp_path / "none")])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"--notify-file {tmp_path / 'none'}: cannot be read" in result.stderr


def test_a_plan_of_the_compactor_tells_nobody() -> None:
    result = CliRunner().invoke(cli, ["compact", "--plan", "--notify", "https://example.com/x"])
    assert "--notify: does not go with --plan" in result.stderr


def test_two_urls_are_one_too_many() -> None:
    result = CliRunner().invoke(cli, ["run", "--notify", "https://example.com/x", "--notify-file", "x"])
    assert "--notify-file: does not go with --notify" in result.stderr


def test_the_format_may_be_chosen() -> None:
    given = {
        "notify": "https://example.com/x",
        "notify_file": None,
        "notify_format": "slack",
        "notify_allow_http": False,
    }
    webhook = take_webhook(given)
    assert webhook is not None
    assert webhook.form == "slack"
    assert given == {}
