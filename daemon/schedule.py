"""When things are due: calendar times and intervals become calls of a callback. The only import of apscheduler.

Guarantees: times that passed while the machine slept lead to one call, not to none and not to many
(docs/reliability.md, J1); a clock set back does not silence a job; a calendar time falls once on the days that summer
time begins and ends. Times missed while the daemon was not running are `due_since`'s.

Does not: remember anything. When a job last succeeded is the archive's to know.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from daemon.errors import ConfigError

Callback = Callable[[], object]

LOOK_SECONDS = 30.0
"""The longest wait between two looks at the clock: a wait does not count the hours a laptop sleeps."""
STEP_BACK_SECONDS = 60.0
"""A clock this much earlier than at the last look was set back; less is the network's fine correction."""
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class CronTimes(BaseTrigger):  # type: ignore[misc]  # apscheduler 3 carries no types
    """The times of one cron line, as cron means them.

    Three places where CronTrigger.from_crontab alone differs: it counts weekdays from Monday; it wants day and weekday
    both, where cron takes either; and a fixed time within the hour that comes twice in autumn fires twice.
    """

    def __init__(self, triggers: list[CronTrigger], *, every_hour: bool) -> None:
        self._triggers = triggers
        self._every_hour = every_hour

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The earliest time after `previous_fire_time`, or from `now` on when there was none."""
        while True:
            next_times = [t.get_next_fire_time(previous_fire_time, now) for t in self._triggers]
            times = [t for t in next_times if t is not None]
            if not times:
                return None
            earliest: datetime = min(times, key=datetime.timestamp)
            if self._every_hour or not earliest.fold:
                return earliest
            previous_fire_time = earliest
            now = datetime.fromtimestamp(earliest.timestamp() + 1, earliest.tzinfo)


def parse(cron: str, *, key: str = "schedule", zone: tzinfo | None = None) -> CronTimes:
    """The trigger of a cron line: five fields or a nickname such as ``@daily``; Sunday is 0 or 7.

    Args:
        cron: minute, hour, day of month, month, day of week.
        key: the configuration key it stands at, for the message.
        zone: whose wall clock is meant; the machine's when not given.

    Raises:
        ConfigError: naming key, text and fix.
    """
    fields = NICKNAMES.get(cron.strip().lower(), cron).split()
    zone = zone or _local_zone()
    fix = 'write minute, hour, day, month, weekday, for example "0 3 * * *" for three in the morning'
    if len(fields) != 5:
        raise ConfigError(f"{key}: {cron!r} has {len(fields)} fields where cron text has 5; {fix}")
    minute, hour, day, month, weekday = fields
    try:
        weekday = _weekdays(weekday.lower())
        common = {"minute": minute, "hour": hour, "month": month.lower(), "timezone": zone}
        if day != "*" and weekday != "*":
            triggers = [CronTrigger(day=day, **common), CronTrigger(day="*", day_of_week=weekday, **common)]
        else:
            triggers = [CronTrigger(day=day, day_of_week=weekday, **common)]
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{key}: {cron!r} is not cron text: {error}; {fix}") from None
    times = CronTimes(triggers, every_hour=hour.startswith("*"))
    if times.get_next_fire_time(None, datetime.now(zone)) is None:
        raise ConfigError(f"{key}: {cron!r} names a day that never comes; {fix}")
    return times


def _local_zone() -> tzinfo:
    zone: tzinfo = CronTrigger().timezone  # the machine's, as apscheduler finds it
    return zone


def _weekdays(field: str) -> str:
    """Cron's weekday field as names: ``1-5`` is Monday to Friday, ``0`` and ``7`` are Sunday."""
    if field == "*":
        return "*"
    days: list[str] = []
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            start, end = 0, 6
        else:
            start = _weekday(first)
            end = _weekday(last) if dash else (6 if step else start)
            end = 7 if end == 0 and dash else end
        if start > end:
            raise ValueError(f"the weekdays {span} run backwards")
        days += WEEKDAYS[start : end + 1 : int(step or 1)]
    return ",".join(dict.fromkeys(days))


def _weekday(text: str) -> int:
    if text in WEEKDAYS:
        return WEEKDAYS.index(text)
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise ValueError(f"{text!r} is no weekday (0 to 7, or sun to sat)")


def due_since(cron: str, last_success_ms: int | None, now_ms: int, *, zone: tzinfo | None = None) -> bool:
    """Whether a time of `cron` has passed since the last success, so that one run is to be made up (J1).

    What never succeeded is due. So is what succeeded in the future: the clock was set back, and one run too many costs
    nothing where nothing changed, while waiting for that future might take years.

    Raises:
        ConfigError: as `parse`.
    """
    zone = zone or _local_zone()
    times = parse(cron, zone=zone)
    if last_success_ms is None or last_success_ms > now_ms:
        return True
    last = datetime.fromtimestamp(last_success_ms / 1000, zone)
    following = times.get_next_fire_time(last, datetime.fromtimestamp(now_ms / 1000, zone))
    return following is not None and following.timestamp() * 1000 <= now_ms


class _ClockWatchingScheduler(BackgroundScheduler):  # type: ignore[misc]  # apscheduler 3 carries no types
    """APScheduler, made to look at the clock at least every LOOK_SECONDS.

    Its own wait is a monotonic one up to the next due time: eight hours asleep would make a run eight hours late.
    """

    def __init__(self, before_look: Callable[[], None], zone: tzinfo) -> None:
        super().__init__(timezone=zone, job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1})
        self._before_look = before_look

    def _process_jobs(self) -> float:
        self._before_look()
        wait = super()._process_jobs()
        return LOOK_SECONDS if wait is None else min(float(wait), LOOK_SECONDS)


class Scheduler:
    """Calls back in worker threads when a time comes. A callback should only hand the work on.

    A callback that raises is logged by apscheduler's logger and called again at its next time. Calls of one key never
    overlap: a time that comes while the last call still runs is passed over, and logged.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time, zone: tzinfo | None = None) -> None:
        """`clock` gives epoch seconds and is asked for steps back; `zone` is whose wall clock cron lines mean."""
        self._clock = clock
        self._zone = zone or _local_zone()
        self._triggers: dict[str, Callable[[], BaseTrigger]] = {}
        self._last_look = clock()
        self._loop = _ClockWatchingScheduler(self._watch_clock, self._zone)

    def add(self, key: str, cron: str, callback: Callback) -> None:
        """Call at the times of `cron`; an earlier job of this key is replaced.

        Raises:
            ConfigError: naming `key`.
        """
        parse(cron, key=key, zone=self._zone)
        self._schedule(key, lambda: parse(cron, key=key, zone=self._zone), callback)

    def interval(self, key: str, seconds: float, jitter: float, callback: Callback) -> None:
        """Call every `seconds`, each time up to `jitter` seconds earlier or later; first after one interval."""

        def trigger() -> BaseTrigger:
            # In UTC, as an interval has no wall clock; from our clock on, so that a reset starts afresh.
            first = datetime.fromtimestamp(self._clock(), UTC) + timedelta(seconds=seconds)
            # jitter must stay within the interval, or a call could fall before the one it follows
            spread = min(jitter, seconds / 2) or None
            return IntervalTrigger(seconds=seconds, start_date=first, timezone=UTC, jitter=spread)

        self._schedule(key, trigger, callback)

    def remove(self, key: str) -> None:
        """Forget a job; an unknown key is none."""
        self._triggers.pop(key, None)
        try:
            self._loop.remove_job(key)
        except JobLookupError:
            return

    def start(self) -> None:
        """Begin to call back, from a thread of its own."""
        self._last_look = self._clock()
        self._loop.start()

    def stop(self) -> None:
        """Call back no more; calls under way are not waited for. Stopping twice is no error."""
        if self._loop.running:
            self._loop.shutdown(wait=False)

    def look(self) -> None:
        """Look at the clock now: for whoever knows that it changed (resume from sleep)."""
        self._loop.wakeup()

    def _schedule(self, key: str, trigger: Callable[[], BaseTrigger], callback: Callback) -> None:
        self._triggers[key] = trigger
        self._loop.add_job(callback, trigger(), id=key, replace_existing=True)

    def _watch_clock(self) -> None:
        """After a step back, compute every due time anew: one that lies years ahead would never come."""
        now, before = self._clock(), self._last_look
        self._last_look = now
        if now < before - STEP_BACK_SECONDS:
            for key, trigger in list(self._triggers.items()):
                self._loop.reschedule_job(key, trigger=trigger())
