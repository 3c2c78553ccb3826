"""The files of a release: the same bytes from the same commit, complete, and nothing that is not committed."""

import email
import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from tests.chart.helm import helm

import karpool

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
AUTHOR = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
TIMES = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
URL = "https://example.com/v1"
MACHINES_OWN = (".so", ".pyd", ".dylib", ".nbi", ".nbc", ".pyc")
NAMES = {
    "karpool-{}-py3-none-any.whl",
    "karpool-{}.tar.gz",
    "karpool-{}.tgz",
    "karpool-{}.cdx.json",
    "kubectl-karpool-{}.tar.gz",
    "kubectl-karpool-{}.yaml",
}


def run(folder: Path, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    whole = os.environ | AUTHOR | TIMES | environment
    return subprocess.run(command, cwd=folder, env=whole, capture_output=True, text=True, check=False)  # noqa: S603


def git(folder: Path, *arguments: str | Path) -> str:
    done = run(folder, "git", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This tree as it is now, committed."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("NOT TESTED: the files of a release; they are made from a commit, and this is no git repository")
    folder = tmp_path_factory.mktemp("release") / "first"
    for name in git(ROOT, "ls-files", "-co", "--exclude-standard", "-z").split("\0"):
        if name and (ROOT / name).is_symlink() | (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "All")
    return folder


@pytest.fixture(scope="module")
def release(repository: Path) -> Path:
    return released(repository)


def released(repository: Path, **environment: str) -> Path:
    done = run(repository, sys.executable, "scripts/release", "--url", URL, **environment)
    assert done.returncode == 0, done.stderr
    return repository / "dist"


def test_another_clone_gives_the_same_bytes(repository: Path, release: Path) -> None:
    other = repository.with_name("other") / "deeper"
    git(repository.parent, "clone", "-q", repository, other)
    for path in other.rglob("*.py"):
        path.chmod(0o700)
    git(other, "config", "core.fileMode", "false")
    again = released(other, TZ="Asia/Kathmandu", LC_ALL="C", SOURCE_DATE_EPOCH="1", PYTHONHASHSEED="7")
    assert (again / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


def test_checksums_name_every_file(release: Path) -> None:
    expected = {name.format(karpool.__version__) for name in NAMES}
    assert {path.name for path in release.iterdir()} == expected | {"SHA256SUMS"}
    assert {line.split()[1] for line in (release / "SHA256SUMS").read_text().splitlines()} == expected
    checked = run(release, "sha256sum", "--check", "--strict", "SHA256SUMS")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.usefixtures("release")  # which is made before anything is changed
def test_a_tree_that_is_not_clean_gives_no_release(repository: Path) -> None:
    other = repository.with_name("dirty")
    git(repository.parent, "clone", "-q", repository, other)
    (other / "src" / "karpool" / "new.py").write_text("")
    done = run(other, sys.executable, "scripts/release")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "release: the tree is not clean; commit or remove src/karpool/new.py\n"
    assert not (other / "dist").exists()


def test_the_wheel_is_for_every_supported_python_on_every_machine(release: Path) -> None:
    (path,) = release.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        (about,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        said = email.message_from_bytes(wheel.read(about))
        tags = wheel.read(about.replace("METADATA", "WHEEL")).decode()
        assert not [
            name for name in wheel.namelist() if name.endswith((".so", ".pyd", ".dylib", ".nbi", ".nbc", ".pyc"))
        ]
    assert re.findall(r"^Tag: (.+)$", tags, flags=re.MULTILINE) == ["py3-none-any"]
    assert "Root-Is-Purelib: true" in tags
    assert said["Requires-Python"] == ">=3.11"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload() == (ROOT / "README.md").read_text()
    versions = {line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if ":: 3." in line}
    assert versions == {"3.11", "3.12", "3.13", "3.14"}


def test_wheel_and_sdist_name_the_page_of_the_project_if_it_is_given() -> None:
    about = (ROOT / "pyproject.toml").read_text()
    named = tomllib.loads(runpy.run_path(str(ROOT / "scripts" / "release"))["with_homepage"](about, URL))
    assert named["project"].pop("urls") == {"Homepage": URL}
    assert named == tomllib.loads(about)


def test_the_sdist_gives_the_same_wheel(release: Path, tmp_path: Path) -> None:
    path = release / f"karpool-{karpool.__version__}.tar.gz"
    with tarfile.open(path) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    program = "import hatchling.build as b; b.build_wheel('..')"
    done = run(folder, sys.executable, "-c", program, SOURCE_DATE_EPOCH="1767323045")
    assert done.returncode == 0, done.stderr
    (made,), (wheel,) = tmp_path.glob("*.whl"), release.glob("*.whl")
    assert made.read_bytes() == wheel.read_bytes()


def test_the_packed_chart_renders_as_its_folder(release: Path) -> None:
    values = {"compactor": {"enabled": True}, "controller": {"provider": "kwok"}, "crds": {"install": True}}
    packed = helm("template", "karpool", release / f"karpool-{karpool.__version__}.tgz", values=values)
    folder = helm("template", "karpool", ROOT / "charts" / "karpool", values=values)
    assert packed.returncode == folder.returncode == 0, packed.stderr
    assert packed.stdout == folder.stdout
    with tarfile.open(release / f"karpool-{karpool.__version__}.tgz") as archive:
        names = archive.getnames()
        assert all(entry.isfile() for entry in archive)
    assert "karpool/files/controller/rbac.yaml" in names
    assert not [name for name in names if name.endswith((".py", "kubernetes.yaml"))]


def test_the_bill_of_materials_is_valid_and_lists_what_the_wheel_needs(release: Path) -> None:
    (path,) = release.glob("*.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text()) is None
    bill = json.loads(path.read_text())
    listed = {(one["name"], one["version"]): one["scope"] for one in bill["components"]}
    lock = runpy.run_path(str(ROOT / "scripts" / "sbom"))["pins"]((ROOT / "requirements.lock").read_text())
    assert all(version in lock[name] for name, version in listed)
    assert listed["numba", lock["numba"][0]] == "required"
    assert listed["boto3", lock["boto3"][0]] == "optional"
    assert "pytest" not in {name for name, _ in listed}
    itself = bill["metadata"]["component"]["bom-ref"]
    (needs,) = (one["dependsOn"] for one in bill["dependencies"] if one["ref"] == itself)
    assert {"pkg:pypi/aiohttp@" + lock["aiohttp"][0], "pkg:pypi/highspy@" + lock["highspy"][0]} <= set(needs)
    assert {ref for one in bill["dependencies"] for ref in one["dependsOn"]} <= {
        one["bom-ref"] for one in bill["components"]
    }


def test_the_bill_of_materials_has_every_extra_that_users_may_ask_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    listed = runpy.run_path(str(ROOT / "scripts" / "sbom"))["EXTRAS"]
    assert extras - {"dev", "docs"} == set(listed)


def test_the_manifest_for_krew_names_the_archive_and_its_checksum(release: Path) -> None:
    name = f"kubectl-karpool-{karpool.__version__}"
    manifest = yaml.safe_load((release / f"{name}.yaml").read_text())
    assert manifest["spec"]["version"] == f"v{karpool.__version__}"
    assert manifest["spec"]["homepage"] == "@HOMEPAGE@"
    (platform,) = manifest["spec"]["platforms"]
    assert platform["uri"] == f"{URL}/{name}.tar.gz"
    assert platform["sha256"] == hashlib.sha256((release / f"{name}.tar.gz").read_bytes()).hexdigest()


def test_the_plugin_knows_its_version(release: Path) -> None:
    with tarfile.open(release / f"kubectl-karpool-{karpool.__version__}.tar.gz") as archive:
        assert {entry.name: entry.mode for entry in archive} == {"LICENSE": 0o644, "kubectl-karpool": 0o755}
        program = archive.extractfile("kubectl-karpool")
        assert program is not None
        text = program.read().decode()
    assert f'"${{KARPOOL_VERSION:-{karpool.__version__}}}"' in text
