"""Ranks as threads: the library has several contexts per process, and its calls let go of Python's lock."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
from typing import Any, Callable, Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests"))

from ports import free_port  # noqa: E402

import espalier  # noqa: E402


class Ranks:
    """Runs a function on some ranks at once: run(size, function) gives their results by rank."""

    def run(self, size: int, function: Callable[..., Any], *, settings: dict[str, object] | None = None) -> list[Any]:
        results: list[Any] = [None] * size
        failures: list[BaseException] = []
        leader = f"127.0.0.1:{free_port()}"

        def one(rank: int) -> None:
            try:
                with espalier.init(rank, size, leader=leader, settings={"deadline_seconds": 60, **(settings or {})}) as job:
                    results[rank] = function(job)
            except BaseException as failure:  # noqa: BLE001: it is raised again, in the thread of the test
                failures.append(failure)

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return results


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    yield Ranks()


@pytest.fixture
def alone() -> Iterator[espalier.Job]:
    """A job of one rank."""
    with espalier.init(0, 1) as job:
        yield job


@pytest.fixture(scope="session")
def command() -> str:
    from espalier.__main__ import find

    found = find()
    if found is None:
        pytest.skip("the command espalier was not built")
    return found


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    package = str(pathlib.Path(espalier.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": package + os.pathsep + os.environ.get("PYTHONPATH", "")}


@pytest.fixture
def last_threads(environment: dict[str, str], tmp_path: pathlib.Path) -> tuple[dict[str, str], Callable[[], list[str]]]:
    """An environment for Python processes, and what tells which threads, besides the main ones, lived when Python went."""
    folder = tmp_path / "last"
    folder.mkdir()
    path = str(pathlib.Path(__file__).resolve().parent / "last") + os.pathsep + environment["PYTHONPATH"]
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    changed = {**environment, **one, "PYTHONPATH": path, "LAST_THREADS": str(folder / "rank"), "CUDA_VISIBLE_DEVICES": ""}

    def found() -> list[str]:
        files = sorted(folder.iterdir())
        assert files, "nobody has told"
        return [f"{file.name}: {line}" for file in files for line in file.read_text().splitlines()[1:]]

    return changed, found


class HubServer:
    """A parameter hub on the loopback, or several, and the jobs that are created there."""

    def __init__(self, command: str, folder: pathlib.Path, hubs: int = 1) -> None:
        self._command, self._folder = command, folder
        self._addresses = [f"127.0.0.1:{free_port()}" for _ in range(hubs)]
        self._address = ",".join(self._addresses)
        self._key = str(folder / "hub.key")
        self._jobs = 0
        self._processes = []
        for number, address in enumerate(self._addresses):
            with open(folder / f"hub{number}.log", "w") as log:
                self._processes.append(
                    subprocess.Popen([command, "hub", "--listen", address, "--key-file", self._key, "--jobs", "1000"], stderr=log)
                )
            if number == 0 and hubs > 1:  # it has made the key when it answers
                self._address = self._addresses[0]
                self.create(1, "avg")
                self._address = ",".join(self._addresses)

    def create(self, workers: int, optimizer: str, *options: str) -> str:
        """The ticket of a new job."""
        self._jobs += 1
        name, ticket = f"job{self._jobs}", str(self._folder / f"{self._jobs}.ticket")
        subprocess.run(
            [self._command, "hub", "create", name, "--hub", self._address, "--key-file", self._key, "--workers", str(workers),
             "--optimizer", optimizer, "--ticket-file", ticket, *(["--chunk", "256"] if "," in self._address else []), *options],
            check=True, stdout=subprocess.DEVNULL, timeout=60,
        )  # fmt: skip
        return ticket

    def run(self, workers: int, optimizer: str, function: Callable[[dict[str, Any]], Any], *options: str) -> list[Any]:
        """Calls function(arguments of connect()) in a thread per worker of a new job; a result that is an exception was raised."""
        ticket = self.create(workers, optimizer, *options)
        settings = {"join_seconds": 60, "deadline_seconds": 60}
        results: list[Any] = [None] * workers

        def one(worker: int) -> None:
            try:
                results[worker] = function({"ticket": ticket, "worker": worker, "workers": workers, "settings": settings})
            except Exception as failure:  # the test looks at it
                results[worker] = failure

        threads = [threading.Thread(target=one, args=(worker,)) for worker in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def end(self) -> int:
        for process in self._processes:
            process.terminate()
        return max(process.wait(60) for process in self._processes)


@pytest.fixture(scope="session")
def hub_server(command: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    server = HubServer(command, tmp_path_factory.mktemp("hub"))
    yield server
    assert server.end() == 0


@pytest.fixture(scope="session", params=[1, 3], ids=["one-hub", "three-hubs"])
def any_hub_server(request: pytest.FixtureRequest, command: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """Jobs with one hub, and with several, which have chunks so small that each has some of any model."""
    server = HubServer(command, tmp_path_factory.mktemp("hubs"), request.param)
    yield server
    assert server.end() == 0


def raise_first(results: list[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
