"""Runs jobs: request files, scheduled targets, and continuous targets that new evidence concerns.

One job runs at a time, and a target is queued once, however many triggers it has (docs/reliability.md, J3). A job first
scans the sources, so that its pages have everything that was recorded before the job was requested.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from daemon import log
from daemon.app import targets
from daemon.app.calls.runs import run_answer
from daemon.app.engine import Engine
from daemon.app.indexing import Interrupted
from daemon.app.loops import MODEL_S, Loop
from daemon.app.targets import concerns, is_better
from daemon.control.answers import as_object
from daemon.errors import BadRequest, OutputFailed, OutputRefused, ReconstituteError, Retry, Stop, described
from daemon.filesystem.disk_space import is_full
from daemon.ingest import ScanResult
from daemon.model import Json, Target
from daemon.redact import redact
from daemon.requests import MOST_ATTEMPTS, Claimed, Request, Requests

_LOG = log.get("jobs")
_RETRY_S = 5.0
_REWRITE_S = 60.0
"""The minimum wait before a target whose pages could not be written runs again."""
BESIDE_MODEL_S = 300.0
"""How long a step of a run may take, besides its request to the model, whose timeout is configured."""
_MODEL_LOOK_S = 600.0
_TICK_S, _LONGEST_S = 0.3, 30.0
"""Seconds between two checks for requests: without file events that report them, and with them."""

_AGAIN_S = 1.0
"""Seconds between two checks for targets whose pages could be better by now."""

_AGAIN_SHARE = 10.0
"""The minimum wait before such a run, as a multiple of the last run's duration."""

_GLANCE_S = 2.0
_GLANCE_SHARE = 300.0
"""Seconds between two checks of the disk: the minimum, and a multiple of the check's duration for large trees."""

_CALM_S = 60.0
"""After this many quiet seconds a change is handled at once; frequent changes wait for `_AGAIN_SHARE`."""

_SETTLE_S = 1.0
"""A continuous target waits this long, so that a burst of messages leads to one run."""


class JobLoop(Loop):
    """Runs requests first, then targets that are due."""

    def __init__(
        self,
        engine: Engine,
        requests: Requests,
        ready: threading.Event,
        fatal: Callable[[BaseException], None],
        *,
        model_look_s: float = _MODEL_LOOK_S,
        rewrite_s: float = _REWRITE_S,
    ) -> None:
        """`model_look_s`: seconds between two checks for a missing chat model; `rewrite_s`: minimum seconds before
        another run of a target whose pages could not be written.
        """
        allowed_s = max(MODEL_S, engine.config.chat.timeout_seconds + BESIDE_MODEL_S)
        super().__init__("jobs", engine, fatal, allowed_s=allowed_s)
        self._model_look_s = model_look_s
        self._rewrite_s = rewrite_s
        self._unwritten: dict[str, float] = {}
        """When to run targets again whose pages could not be written, by path; monotonic seconds."""
        self._last_model_look = time.monotonic()
        self._requests = requests
        requests.on_refused = self._refused
        self._ready = ready
        self._lock = threading.Lock()
        self._due_times: dict[str, float] = {}
        self.current: str | None = None
        self.sees_all: Callable[[], bool] = lambda: False
        """Whether file events report every request."""
        self.put_off = 0
        self.failed_jobs = 0
        """Requests with a path that failed, and runs of targets that failed."""
        self._configured = {target.path for target in targets.configured(engine.config)}
        self._targets = targets.known(engine.archive, engine.config)
        self._run_seconds: dict[str, float] = {}
        self._compared = time.monotonic()
        self._next_glance = 0.0
        self._last_changes: dict[str, float] = {}
        """When a check of the disk last found that a target's pages must be made again, by path; monotonic seconds."""
        for path in self._targets:
            last = engine.archive.target_get(path, "last") or {}
            if "ground" in last:
                engine.grounds[path] = last["ground"]

    @property
    def queued(self) -> int:
        """How many targets wait for their run, including those put off for later."""
        with self._lock:
            return len(self._due_times)

    @property
    def due(self) -> int:
        """How many targets should run now."""
        with self._lock:
            now = time.monotonic()
            return sum(at <= now for at in self._due_times.values())

    @property
    def later(self) -> list[str]:
        """The paths of targets that are due later."""
        with self._lock:
            now = time.monotonic()
            return sorted(path for path, at in self._due_times.items() if at > now)

    def enqueue(self, path: str, delay_s: float = 0.0) -> None:
        """Queue a run of this target. If it is queued already, the earlier time counts."""
        at = time.monotonic() + delay_s
        with self._lock:
            self._due_times[path] = min(at, self._due_times.get(path, at))
        self.wake()

    def on_scan(self, result: ScanResult) -> None:
        """Queue the continuous targets that the new evidence concerns."""
        if not result.places and not result.removed:
            return
        for target in list(self._targets.values()):  # a request may add one meanwhile
            if target.refresh == "continuous" and (result.removed or concerns(result.places, target.path)):
                self.enqueue(target.path, _SETTLE_S)

    def turn(self) -> float:
        if not self._ready.wait(0.5):
            return 0.0
        claimed = self._requests.claim()
        if claimed is not None:
            self._run_request(claimed)
            return 0.0
        path = self._next()
        if path is not None:
            target = self._targets.get(path)
            if target is not None:  # otherwise a request has stopped following it meanwhile
                self._run_target(target)
            return 0.0
        self._look_for_model()
        self._try_to_write_again()
        self._look_for_better_ground()
        self._look_at_disk()
        return self._rest_s()

    def _rest_s(self) -> float:
        """Seconds until something may be due; without file events, until the next check for requests."""
        if not self.sees_all() or self._requests.pending():  # a file that may still be written to is not claimed yet
            return _TICK_S
        looks = [self._compared + _AGAIN_S, self._next_glance] if self._targets else []
        with self._lock:
            at = min([*self._due_times.values(), *self._unwritten.values(), *looks], default=math.inf)
        return min(_LONGEST_S, max(_TICK_S, at - time.monotonic()))

    def _look_for_better_ground(self) -> None:
        """Queue targets whose pages were made while something was pending that has arrived since (app.targets)."""
        if time.monotonic() - self._compared < _AGAIN_S:
            return
        self._compared, now = time.monotonic(), self._engine.ground()
        for path in list(self._targets):
            was = self._engine.grounds.get(path)
            if was is not None and is_better(now, was):
                self._engine.grounds[path] = now  # until the run stores its own
                self.enqueue(path, self._pause(path))

    def _look_at_disk(self) -> None:
        """Periodically queue targets whose pages or recorded files changed on the disk."""
        began = time.monotonic()
        if began < self._next_glance:
            return
        looks, index = self._engine.looks, self._engine.index_look
        changed = [path for path in looks.keys() & self._targets.keys() if looks[path].has_changed()]
        if not changed and index is not None and index.has_changed():
            changed = list(looks)[:1]  # any run makes the page over all targets
        now = time.monotonic()
        for path in changed:
            # After a quiet time a person probably waits; a file that changes all the time must not keep us busy.
            is_first = now - self._last_changes.get(path, -_CALM_S) >= _CALM_S
            self._last_changes[path] = now
            self.enqueue(path, _SETTLE_S if is_first else self._pause(path))
        self._next_glance = now + max(_GLANCE_S, _GLANCE_SHARE * (now - began))

    def _try_to_write_again(self) -> None:
        """Queue targets whose pages could not be written, because no event says when a folder is writable."""
        now = time.monotonic()
        for path in [path for path, at in self._unwritten.items() if at <= now]:
            del self._unwritten[path]
            self.enqueue(path)

    def _pause(self, path: str) -> float:
        """Seconds before another run of this target, longer after an expensive run."""
        return max(_SETTLE_S, _AGAIN_SHARE * self._run_seconds.get(path, 0.0))

    def _next(self) -> str | None:
        """The target that has waited longest, so that a frequent one does not delay the others."""
        with self._lock:
            now = time.monotonic()
            earliest = min(((at, path) for path, at in self._due_times.items() if at <= now), default=None)
            if earliest is None:
                return None
            self._due_times.pop(earliest[1])
            return earliest[1]

    def _look_for_model(self) -> None:
        """Periodically, when idle, look for a chat model, and run the targets that had none.

        Only if `chat.provider` is auto, because a named model is tried again by its targets' runs.
        """
        if self._engine.config.chat.provider != "auto" or time.monotonic() - self._last_model_look < self._model_look_s:
            return
        self._last_model_look = time.monotonic()
        without = [path for path in list(self._targets) if self._had_no_model(path)]
        if not without:
            return
        with self._engine.answerer() as chat_model:
            is_there = chat_model.model is not None
        for path in without if is_there else ():
            self.enqueue(path)

    def _had_no_model(self, path: str) -> bool:
        last = self._engine.archive.target_get(path, "last") or {}
        return last.get("state") == "done" and last.get("result", {}).get("model") == ""

    def _sign(self, _: Json) -> None:
        self.sign()
        if self._stop.is_set():
            raise Interrupted("the daemon is stopping; this run is repeated at the next start")

    def _run_request(self, claimed: Claimed) -> None:
        """Run a request and move it to done/, or to failed/ if any of its paths failed, with a result beside it.

        After a stop, or a temporary failure, it is queued again. Each of several paths has its own result.
        """
        self.current = f"request {claimed.name}"
        try:
            self._engine.scan(everything=False, patient=False)
            known = len(self._engine.archive.forgotten)
            results, errors = self._answers(claimed)
            with self._engine.keeping_results(known):
                self._end_request(claimed, results, errors)
        except (Interrupted, Stop):
            self._requests.release(claimed)
            raise
        except Exception as error:
            if is_full(error):
                self._requests.release(claimed)
                raise
            if isinstance(error, OSError):
                self._requests.drop(claimed)
                raise
            self._request_failed(claimed, error)
        finally:
            self.current = None

    def _end_request(self, claimed: Claimed, results: list[Json], errors: list[Exception]) -> None:
        result = {"results": results}
        if errors:
            self._requests.fail(claimed, _together(errors), result if len(errors) < len(results) else None)
        else:
            self._requests.finish(claimed, result)
        _LOG.info("request", name=claimed.name, targets=len(results), failed=len(errors))
        self.failed_jobs += 1 if errors else 0

    def _refused(self, name: str, error: Exception) -> None:
        self.failed_jobs += 1
        self._engine.report(f"request {name}", error)

    def _request_failed(self, claimed: Claimed, error: Exception) -> None:
        if isinstance(error, Retry | OutputFailed):
            self._engine.report(f"request {claimed.name}", error)
            (self._requests.release if isinstance(error, Retry) else self._requests.drop)(claimed)
            self.put_off += 1
            self._stop.wait(_RETRY_S)
            return
        self.failed_jobs += 1
        self._requests.fail(claimed, error)
        if not isinstance(error, ReconstituteError):
            raise error
        self._engine.report(f"request {claimed.name}", error)

    def _answers(self, claimed: Claimed) -> tuple[list[Json], list[Exception]]:
        """A result for each path, and the errors of those that failed.

        Raises:
            Retry, OutputFailed: the whole request must be repeated later.
            Interrupted, Stop: the daemon is ending.
        """
        results: list[Json] = []
        errors: list[Exception] = []
        for request in claimed.requests:
            try:
                results.append(self._answer(request))
            except (Interrupted, Stop, Retry):
                raise
            except Exception as error:
                if is_full(error) or (isinstance(error, OutputFailed) and claimed.attempt < MOST_ATTEMPTS):
                    raise
                self._engine.report(f"request {claimed.name}", error)
                errors.append(error)
                results.append({"target": request.path, "error": described(error, redact(str(error)))})
        return results, errors

    def _answer(self, request: Request) -> Json:
        refresh = "continuous" if request.refresh == "continuous" else "once"
        target = Target(path=request.path, questions=request.questions, refresh=refresh, output=request.output)
        # A request to follow a path replaces earlier requests' questions, but not the configuration's.
        known_targets = targets.known(self._engine.archive, self._engine.config)
        if refresh == "continuous":
            known_targets = {path: configured for path, configured in known_targets.items() if path in self._configured}
        full_target = targets.with_own_questions(target, known_targets)
        try:
            result = self._engine.run_target(full_target, self._sign, at=request.at)
        except BadRequest:  # nothing is recorded of the path, but an earlier request may follow it
            self._end_following(request)
            raise
        if refresh == "continuous":
            targets.adopt(self._engine.archive, target)
            if target.path not in self._configured:
                self._targets[target.path] = target
        notes = self._end_following(request)
        if request.refresh == "scheduled":
            notes.append(f"{request.path}: a schedule needs a [[targets]] entry in the configuration; it was run once")
        result["warnings"] = [*result["warnings"], *notes]
        if result["later_s"] and not request.at and target.path in self._targets:
            self.enqueue(target.path, result["later_s"])
        return as_object(run_answer(result))

    def _end_following(self, request: Request) -> list[str]:
        """Stop following the path of a request for one run or a schedule; returns warnings for its result."""
        if request.refresh in {"", "continuous"} or not targets.drop(self._engine.archive, request.path):
            return []
        if request.path not in self._configured:
            self._targets.pop(request.path, None)
            with self._lock:
                self._due_times.pop(request.path, None)
        return [f"{request.path}: this request has ended the earlier one to keep it up to date"]

    def _run_target(self, target: Target) -> None:
        self.current = target.path
        began = time.monotonic()
        try:
            self._engine.scan(everything=False)
            result = self._engine.run_target(target, self._sign)
            self._run_seconds[target.path] = time.monotonic() - began
            self._unwritten.pop(target.path, None)
        except (Interrupted, Stop):
            raise
        except Exception as error:
            if is_full(error):
                self.enqueue(target.path)
                raise
            self._engine.report(f"target {target.path}", error)
            if isinstance(error, Retry):
                self.put_off += 1
                self.enqueue(target.path, 60.0)
            else:
                self._note_failure(target.path, error)
            if isinstance(error, OutputRefused):
                now = time.monotonic()
                self._unwritten[target.path] = now + max(self._rewrite_s, _AGAIN_SHARE * (now - began))
        else:
            if result["later_s"]:
                self.enqueue(target.path, result["later_s"])
            _LOG.info(
                "target", path=target.path, pages=result.get("pages"), written=result.get("written"),
                kept=result.get("kept"), model_calls=result["model_calls"], seconds=round(time.monotonic() - began, 2),
            )  # fmt: skip
        finally:
            self.current = None

    def _note_failure(self, path: str, error: Exception) -> None:
        """Store the failure for the status; the result of the last successful run stays."""
        self.failed_jobs += 1
        last = self._engine.archive.target_get(path, "last") or {}
        state = f"failed: {redact(str(error))}"
        failure = {"time": int(time.time() * 1000), "state": state, "succeeded": targets.last_success(last)}
        self._engine.archive.target_put(path, "last", last | failure)

    def failed(self, error: Exception) -> None:
        if not isinstance(error, Interrupted):
            self._engine.report("jobs", error)


def _together(errors: list[Exception]) -> Exception:
    """One error with the messages of all."""
    first = errors[0]
    if len(errors) == 1:
        return first
    kind = type(first) if isinstance(first, ReconstituteError) else ReconstituteError
    return kind("; ".join(dict.fromkeys(str(error) for error in errors)))
