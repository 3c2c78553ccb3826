"""The process that works answers out, beside the one that serves pages: `python -m karpool.web.answering_process`.

It reads messages from standard input and writes others to standard output, each a pickled value behind its length. It
ends when its input does.
"""

import os
import pickle
import queue
import struct
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import Any, BinaryIO, Final

from karpool.web.answers import Answers
from karpool.web.journal_file import JournalFile
from karpool.web.messages import LENGTH, Answered, Ask, Drop, Failed, Foreseen, Progressed, Start, Update
from karpool.web.questions import QuestionError
from karpool.wire.problems import InputError

_BETWEEN_REPORTS: Final = 0.1


class Dropped(BaseException):
    """Nobody wants the answer any more."""


class AnsweringProcess:
    """Answers one question after the other; short ones also while a long one is being worked on."""

    def __init__(self, answers: Answers, inbox: "queue.Queue[Any]", out: BinaryIO) -> None:
        self._answers = answers
        self._inbox = inbox
        self._out = out
        self._waiting: list[Ask] = []
        self._unwanted: set[int] = set()
        self._working: list[Ask] = []
        self._reported = 0.0

    def run(self) -> None:
        while True:
            if not self._waiting:
                self._take(self._inbox.get())
            self._take_all()
            if self._waiting:
                self._work(self._waiting.pop(0))

    def _take_all(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._take(self._inbox.get_nowait())

    def _take(self, message: Any) -> None:
        if isinstance(message, Update):
            self._answers.update(message.collection, message.changed)
        elif isinstance(message, Ask):
            self._waiting.append(message)
        elif isinstance(message, Drop):
            if any(asked.number == message.number for asked in self._working):
                self._unwanted.add(message.number)
            self._waiting = [asked for asked in self._waiting if asked.number != message.number]

    def _work(self, asked: Ask) -> None:
        self._working.append(asked)
        try:
            answer = self._answers.answer(
                asked.question, self._progress, lambda known: self._send(Foreseen(asked.number, known))
            )
        except Dropped:
            pass
        except (QuestionError, InputError) as error:
            self._send(Failed(asked.number, str(error)))
        except Exception as error:  # noqa: BLE001 - a bug must not take all other answers with it
            self._send(Failed(asked.number, f"{type(error).__name__}: {error}"))
        else:
            self._send(Answered(asked.number, answer))
        finally:
            self._working.pop()
            self._unwanted.discard(asked.number)

    def _progress(self, what: str, done: int, most: int | None) -> None:
        """Called often while an answer is worked on."""
        self._take_all()
        # One that is being worked on behind it is given up when its turn comes.
        asked = self._working[-1]
        if asked.number in self._unwanted:
            raise Dropped
        now = time.monotonic()
        if now - self._reported > _BETWEEN_REPORTS:
            self._reported = now
            self._send(Progressed(asked.number, what, done, most))
        if asked.question.long:
            self._answer_short_ones()

    def _answer_short_ones(self) -> None:
        for asked in [asked for asked in self._waiting if not asked.question.long]:
            self._waiting.remove(asked)
            self._work(asked)

    def _send(self, message: Any) -> None:
        frame = pickle.dumps(message)
        self._out.write(struct.pack(LENGTH, len(frame)) + frame)
        self._out.flush()


def read_messages(stream: BinaryIO, inbox: "queue.Queue[Any]") -> None:
    """Read messages until the process that sends them has ended; then end this one, whatever it is working on."""
    size = struct.calcsize(LENGTH)
    try:
        while len(head := stream.read(size)) == size:
            (length,) = struct.unpack(LENGTH, head)
            inbox.put(pickle.loads(stream.read(length)))  # noqa: S301 - from the process that started this one
    except Exception:  # noqa: BLE001 - without messages there is nothing to do
        traceback.print_exc()
    os._exit(0)


def main() -> None:
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever prints, by mistake or in a library, must not come between the messages.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    inbox: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=read_messages, args=(sys.stdin.buffer, inbox), daemon=True).start()
    start: Start = inbox.get()
    os.nice(start.nice)
    from karpool.optimization.warmup import warm_up

    warm_up()
    journal = None if start.journal is None else JournalFile(start.journal)
    AnsweringProcess(Answers(start.decider, journal), inbox, out).run()


if __name__ == "__main__":
    main()
