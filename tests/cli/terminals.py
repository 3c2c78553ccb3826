"""Shells as people use them: each in a terminal, where keys are pressed and what they type is read back."""

import os
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

BIN: Final = Path(sys.executable).parent
SECONDS: Final = 60.0
"""After these a shell that does not answer has failed."""
SHOW: Final = "\x14"
"""Ctrl-T prints the line and empties it, once a shell is set up like this. (A key such as Ctrl-U, which empties it too,
may be taken by the terminal instead, before the shell listens again.)"""
SETUP: Final = {
    "bash": """\
source <(karpool completion bash)
show() { printf '<<%s>>\\n' "$READLINE_LINE"; READLINE_LINE= READLINE_POINT=0; }
bind -x '"\\C-t": show'
""",
    "zsh": """\
autoload -Uz compinit && compinit -u -d "$HOME/.zcompdump"
source <(karpool completion zsh)
show() { zle -M "<<$BUFFER>>"; BUFFER= }
zle -N show
bindkey '^T' show
""",
    "fish": """\
karpool completion fish | source
bind \\ct 'echo "<<"(commandline)">>"; commandline ""'
""",
}
WITHOUT_SETTINGS: Final = {"bash": ["--norc", "--noprofile"], "zsh": [], "fish": ["--no-config"]}
IN_A_TERMINAL: Final = "import pty, sys; pty.spawn(sys.argv[1:])"


class Terminal:
    """An interactive shell in a folder, which is its home."""

    def __init__(self, name: str, program: str, home: Path) -> None:
        known = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home), "TERM": "dumb"}
        command = [sys.executable, "-c", IN_A_TERMINAL, program, *WITHOUT_SETTINGS[name], "-i"]
        self._process = subprocess.Popen(  # noqa: S603
            command, cwd=home, env=known, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        (home / "setup").write_text(f"stty rows 50 columns 200\n{SETUP[name]}", encoding="utf-8")
        # The word is put together by the shell, so that the line itself, which is echoed, does not have it.
        self._press("source ./setup; echo re''ady\n")
        self._wait_for("ready")

    def completed(self, line: str) -> str:
        """What a line becomes when Tab is pressed at its end."""
        self._press(f"{line}\t{SHOW}")
        return self._wait_for("<<(.*?)>>")[1]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _press(self, keys: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(keys.encode())
        self._process.stdin.flush()

    def _wait_for(self, pattern: str) -> re.Match[str]:
        """Read until the pattern is there; what was read before is forgotten."""
        assert self._process.stdout is not None
        output, deadline = "", time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while (found := re.search(pattern, output)) is None:
                ready = selector.select(deadline - time.monotonic())
                data = os.read(self._process.stdout.fileno(), 65536) if ready else b""
                assert data, f"no {pattern!r} in {output!r}"
                output += data.decode(errors="replace")
        return found
