"""Loading: everything that `-f` names, as typed objects with their origins.

`read` collects all problems, for `validate`; `load` raises the first, for all other commands. An object is decoded
completely or reported.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from karpool.model import provisioner
from karpool.model.objects import Objects
from karpool.model.reading.consequences import within
from karpool.model.reading.decoding import ObjectReading, Raw, read_object, read_provisioner
from karpool.model.reading.kinds import KINDS, Kind, find_kind, qualified_kind
from karpool.model.reading.misspelt import probably_meant
from karpool.wire.documents import DocumentError, placed_documents
from karpool.wire.objects import Object
from karpool.wire.problems import Flaw, InputError, Problem
from karpool.wire.sources import ManifestSource, display_name, find_sources, read_source

UNKNOWN_KIND: Final = "UnknownKind"
"""The rule of warnings about objects whose kind looks like a slip."""
_DEFAULT_NAMESPACE: Final = "default"
_LIST: Final = "List"
_KEY_FIELDS: Final = ("metadata.name", "metadata.namespace")
_LONGEST_NAME: Final = 253


class Origin(NamedTuple):
    """Where an object was read: the file, its document from 1 and the line of it, and the item of a list from 1."""

    file: str
    document: int
    line: int
    item: int | None = None

    def __str__(self) -> str:
        item = "" if self.item is None else f", item {self.item}"
        return f"document {self.document}{item}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read: the objects, their number by kind, what was skipped, and the problems.

    `problems` make the input unusable; `omissions` are fields that an API server requires and decisions do not.
    """

    objects: Objects
    kinds: Mapping[str, int]
    listed: frozenset[str]
    """The kinds that the input speaks of, be it by a list without items."""
    skipped: Mapping[str, int]
    origins: Mapping[tuple[str, str], Origin]
    warnings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    omissions: tuple[Problem, ...] = ()
    mended: Objects = field(default_factory=Objects)
    """Of objects that cannot be read what can be: to look for more problems, not to decide."""

    @property
    def all_objects(self) -> Objects:
        """Sound or not: for whoever looks for problems."""
        return Objects(**{name: (*kept, *getattr(self.mended, name)) for name, kept in asdict(self.objects).items()})

    def file_of(self, kind: str, key: str) -> str:
        origin = self.origins.get((kind, key))
        return "" if origin is None else origin.file

    def problem(self, flaw: Flaw, kind: str, key: str, about: str = "") -> Problem:
        """A flaw of an object, with the place where the object was read."""
        origin = self.origins.get((kind, key))
        file, line = ("", None) if origin is None else (origin.file, origin.line)
        return Problem.of(flaw, file=file, about=about or f"{kind} {key}", line=line)


Progress = Callable[[str, int, int | None], None]
"""Told what is being done, how many steps are done, and how many there are, if that is known."""


def _nobody_watches(_what: str, _done: int, _all: int | None) -> None:
    pass


def load(sources: Sequence[str], *, stdin: BinaryIO, progress: Progress = _nobody_watches) -> Loaded:
    """Read what the arguments of `-f` name; raises InputError for the first thing that cannot be used."""
    loaded = read(sources, stdin=stdin, progress=progress)
    if loaded.problems:
        raise InputError(loaded.problems[0])
    return loaded


def read(sources: Sequence[str], *, stdin: BinaryIO, progress: Progress = _nobody_watches) -> Loaded:
    """Read what the arguments of `-f` name, and collect everything that cannot be used."""
    reader, files, missing = _Reader(), list[ManifestSource](), list[Problem]()
    try:
        files.extend(find_sources(sources))
    except InputError as error:
        missing.append(error.problem)
    for number, source in enumerate(files):
        progress("Reading files", number, len(files) if len(files) > 1 else None)
        reader.read_source(source, stdin)
    reader.problems += missing
    return reader.loaded()


class _Head(msgspec.Struct, rename="camel"):
    """Just enough of an object to know how to read the rest."""

    kind: str | None = None
    api_version: str | None = None


class _List(_Head):
    items: tuple[msgspec.Raw, ...] | msgspec.UnsetType | None = msgspec.UNSET


_HEAD: Final = msgspec.json.Decoder(_Head)
_ITEMS: Final = msgspec.json.Decoder(_List)
_ARRAY: Final = msgspec.json.Decoder(tuple[msgspec.Raw, ...])


@dataclass
class _Reader:
    collections: dict[str, list[Any]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    listed: set[str] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)
    warnings: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    omissions: list[Problem] = field(default_factory=list)
    mended: dict[str, list[Any]] = field(default_factory=dict)

    def loaded(self) -> Loaded:
        return Loaded(
            objects=_objects(self.collections),
            mended=_objects(self.mended),
            kinds=dict(sorted(self.kinds.items())),
            listed=frozenset(self.listed | {kind for kind, _ in self.origins}),
            skipped=dict(sorted(self.skipped.items())),
            origins=self.origins,
            warnings=tuple(self.warnings),
            problems=tuple(self.problems),
            omissions=tuple(self.omissions),
        )

    def read_source(self, source: ManifestSource, stdin: BinaryIO) -> None:
        file = display_name(source)
        number = 0
        try:
            data = read_source(source, stdin)
            for number, document in enumerate(placed_documents(data), start=1):
                self._document(document.data, Origin(file, number, document.line))
        except DocumentError as error:
            about = f"document {error.document}"
            self.problems.append(Problem(file=file, object=about, message=str(error), line=error.line))
        except InputError as error:
            self.problems.append(error.problem)
        else:
            if not number:
                message = "is empty; expected at least one manifest in JSON or YAML"
                problems = self.problems if source.named else self.warnings
                problems.append(Problem(file=file, rule="Empty", message=message))

    def _document(self, document: bytes | memoryview, origin: Origin) -> None:
        if document[:1] == b"[":
            self._items(_ARRAY.decode(document), origin, "", "")
            return
        self._entry(document, origin, "", "")

    def _items(self, items: tuple[msgspec.Raw, ...], origin: Origin, kind: str, api_version: str) -> None:
        for number, item in enumerate(items, start=1):
            self._entry(item, origin._replace(item=number), kind, api_version)

    def _entry(self, raw: Raw, origin: Origin, listed_kind: str, listed_version: str) -> None:
        """An object, or a list of them; items of a list may leave their kind and version to it."""
        head = self._head(raw, origin)
        if head is None:
            return
        kind, api_version = head.kind or listed_kind, head.api_version or listed_version
        if kind.endswith(_LIST):
            self._list(raw, origin, kind, api_version)
        else:
            self._object(raw, origin, kind, api_version)

    def _list(self, raw: Raw, origin: Origin, kind: str, api_version: str) -> None:
        try:
            items = _ITEMS.decode(raw).items
        except msgspec.ValidationError:
            self._refuse(origin, str(origin), Flaw("items", "InvalidValue", "expected a list of objects"))
            return
        if items is msgspec.UNSET and kind != _LIST:
            self.skipped[kind] += 1  # the name of an ordinary kind may end in List, too
        else:
            self.listed.add(kind.removesuffix(_LIST))
            self._items(items or (), origin, kind.removesuffix(_LIST), api_version)

    def _head(self, raw: Raw, origin: Origin) -> _Head | None:
        try:
            return _HEAD.decode(raw)
        except msgspec.ValidationError as error:
            text = str(error)
            at = next((name for name in ("kind", "apiVersion") if f"$.{name}`" in text), "")
            message = "expected text" if at else "expected an object with apiVersion, kind and metadata"
            self._refuse(origin, str(origin), Flaw(at, "InvalidValue", message))
            return None

    def _object(self, raw: Raw, origin: Origin, name: str, api_version: str) -> None:
        if not name:
            message = "is missing; a manifest needs apiVersion, kind and metadata.name"
            self._refuse(origin, str(origin), Flaw("kind", "MissingField", message))
        elif name == "Provisioner" and api_version == provisioner.API_VERSION:
            self._keep(read_provisioner(raw), raw, origin, KINDS["NodePool"], name)
        elif (kind := find_kind(name, api_version)) is None or (kind.only and kind.collection_of(_name(raw)) is None):
            self._skip(raw, origin, name, api_version)
        else:
            self._keep(read_object(raw, kind, api_version), raw, origin, kind, name)

    def _skip(self, raw: Raw, origin: Origin, kind: str, api_version: str) -> None:
        """Count an object that is not needed; one whose kind looks like a slip is a warning, too."""
        self.skipped[qualified_kind(kind, api_version)] += 1
        meant = "" if find_kind(kind, api_version) else probably_meant(kind, api_version)
        if meant:
            name = _name(raw)
            about = f"{kind} {name}" if isinstance(name, str) else str(origin)
            message = f"{kind[:60]!r} of {api_version[:60] or 'no apiVersion'} is not known, and is left out{meant}"
            self.warnings.append(_placed(Flaw("kind", UNKNOWN_KIND, message), origin, about))

    def _keep(self, reading: ObjectReading, raw: Raw, origin: Origin, kind: Kind, name: str) -> None:
        """Collect an object under the kind it was written as, and its flaws."""
        flawed = reading.refused or reading.omitted or reading.warnings
        about = _label(name, raw, kind, origin) if flawed else ""
        for flaw in reading.refused:
            self._refuse(origin, about, flaw)
        self.omissions += [_placed(flaw, origin, about) for flaw in reading.omitted]
        self.warnings += [_placed(flaw, origin, about) for flaw in reading.warnings]
        if reading.object is not None:
            self._collect(reading.object, origin, kind, name)
        elif reading.mended is not None and not any(
            within(part, flaw.field) for part in _KEY_FIELDS for flaw in reading.refused
        ):
            self._collect(reading.mended, origin, kind, name, mended=True)

    def _collect(self, obj: Object, origin: Origin, kind: Kind, name: str, *, mended: bool = False) -> None:
        metadata = obj.metadata
        if not metadata.name:
            about = f"{name} in {origin}"
            self._refuse(origin, about, Flaw("metadata.name", "MissingName", "is missing; every object needs a name"))
            return
        if len(metadata.name) > _LONGEST_NAME:
            message = f"has {len(metadata.name)} characters; names have at most {_LONGEST_NAME}"
            self._refuse(origin, f"{name} in {origin}", Flaw("metadata.name", "LongName", message))
            return
        if kind.namespaced != bool(metadata.namespace):
            namespace = _DEFAULT_NAMESPACE if kind.namespaced else ""
            obj = replace(obj, metadata=replace(metadata, namespace=namespace))
        identity = (kind.name, obj.key)
        if identity in self.origins:
            self._refuse(origin, f"{name} {obj.key}", _duplicate(self.origins[identity], origin))
            return
        self.origins[identity] = origin
        self.kinds[name] += not mended
        collections = self.mended if mended else self.collections
        collections.setdefault(kind.collection_of(obj.name) or kind.collection, []).append(obj)

    def _refuse(self, origin: Origin, about: str, flaw: Flaw) -> None:
        self.problems.append(_placed(flaw, origin, about))


def _objects(collections: Mapping[str, list[Any]]) -> Objects:
    return Objects(**{name: tuple(listed) for name, listed in collections.items()})


def _placed(flaw: Flaw, origin: Origin, about: str) -> Problem:
    return Problem.of(flaw, file=origin.file, about=about, line=origin.line)


def _duplicate(first: Origin, second: Origin) -> Flaw:
    where = f"{first} of the same file" if first.file == second.file else f"{first.file}, {first}"
    return Flaw("metadata.name", "DuplicateName", f"is the name of an object in {where} already; keep one of them")


class _Named(msgspec.Struct):
    metadata: dict[str, Any] | None = None


def _name(raw: Raw) -> object:
    try:
        return (msgspec.json.decode(raw, type=_Named).metadata or {}).get("name")
    except msgspec.ValidationError:
        return None


def _label(name: str, raw: Raw, kind: Kind, origin: Origin) -> str:
    """The object's kind and name, as far as they can be read."""
    try:
        metadata = msgspec.json.decode(raw, type=_Named).metadata or {}
    except msgspec.ValidationError:
        metadata = {}
    own = metadata.get("name")
    if not isinstance(own, str) or not own:
        return f"{name} in {origin}"
    namespace = metadata.get("namespace") or _DEFAULT_NAMESPACE
    return f"{name} {namespace}/{own}" if kind.namespaced else f"{name} {own}"
