import hashlib

import pytest
from jsonschema_rs import validator_for
from msgspec.structs import replace

from cueline.errors import SandboxError, SandboxGoneError
from cueline.events.sandbox import SandboxSpec
from cueline.sandboxes.ray import CLUSTER_TOKEN, RAY, TOKEN, URL, RayBackend
from cueline.testing.sandbox_contract import SandboxContract
from tests.sandboxes.ray_server import TOKEN as RIGHT_TOKEN
from tests.sandboxes.ray_server import ray_server
from tests.sandboxes.session import works_in
from tests.sandboxes.vendor_server import Fault, served

SPEC = SandboxSpec(backend="ray")
LABELS = {"cueline-log": "a", "cueline-sandbox": "sandbox-default/1"}
ANY = r"/sandboxes/[^/]+$"


@pytest.fixture
def vendor(tmp_path):
    service, server = ray_server(tmp_path)
    with served(server):
        yield service, server


@pytest.fixture
def service(vendor):
    return vendor[0]


@pytest.fixture
def server(vendor):
    return vendor[1]


def client(server, token=RIGHT_TOKEN, **how):
    return RayBackend({URL: server.url, TOKEN: token}, vendor=replace(RAY, **how))


@pytest.fixture
def backend(server):
    return client(server)


@pytest.fixture
def place(backend):
    place = backend.create(SPEC, LABELS, {})
    yield place
    backend.delete(place)


class TestRay(SandboxContract):
    @pytest.fixture
    def backend(self, server):
        return client(server)

    @pytest.fixture
    def spec(self):
        return SPEC

    def test_a_stopped_sandbox_keeps_its_files(self, backend, place, labels):
        """Ray has no stop: the sandbox is deleted, and a fresh one is empty."""
        backend.put(place, "kept", b"no")
        backend.keep_alive(place)

        backend.stop(place)

        assert "gone" == backend.state(place)
        assert [] == list(backend.find(labels))
        with pytest.raises(SandboxGoneError):
            backend.start(place)
        fresh = backend.create(SPEC, labels, {})
        with pytest.raises(FileNotFoundError):
            backend.get(fresh, "kept")

    def test_a_stop_ends_all_processes(self, backend, place, spec, labels):
        """Ray has no start: a fresh sandbox looks for them."""
        begin = ["sh", "-c", "setsid sleep 77001 >/dev/null 2>&1 &"]
        seen = [
            "sh",
            "-c",
            "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]leep 77001'",
        ]
        backend.exec(place, begin, timeout_seconds=30)

        backend.stop(place)

        fresh = backend.create(spec, labels, {})
        assert b"0" == backend.exec(fresh, seen, timeout_seconds=30).output.strip()

    def test_a_creation_that_is_repeated_makes_no_second_sandbox(self, backend, place, labels):
        """The same as in the contract, without a stop."""
        backend.put(place, "mine", b"")

        assert place == backend.create(SPEC, labels, {"GREETING": "hello there"})
        assert b"" == backend.get(place, "mine")
        assert [place] == [each.place for each in backend.find(labels)]

    def test_a_volume_outlives_its_sandbox_and_is_shared(self, backend, labels):
        """Ray has no volumes."""
        for ask in (
            lambda: backend.volume("cache"),
            lambda: backend.create(SandboxSpec(backend="ray", volume="cache"), labels, {}),
        ):
            with pytest.raises(SandboxError, match="leave `volume` out, or use another back-end"):
                ask()


def refusal(code, message):
    return {"error": {"code": code, "message": message}}


FAULTS = [
    (401, refusal("unauthorized", "invalid token"), f"401: invalid token; set {TOKEN} to a key"),
    (403, {"detail": "not your service"}, f"403: not your service; set {TOKEN} to a key"),
    (409, refusal("conflict", "it is terminating"), "409: it is terminating; change"),
    (429, "slow down", "429: slow down; try again later"),
    (500, refusal("internal", "internal server error"), "500: internal server error; try again"),
    (503, refusal("sandbox_unavailable", "temporarily unavailable"), "503: temporarily unavail"),
]


@pytest.mark.parametrize(("status", "body", "told"), FAULTS)
def test_a_refusal_has_the_words_of_the_vendor_and_a_next_step(
    server, backend, place, *, status, body, told
):
    server.faults.append(Fault("POST", "/execs$", status, body))

    with pytest.raises(SandboxError, match=told) as raised:
        run(backend, place)

    assert not isinstance(raised.value, SandboxGoneError)
    assert raised.value.place == place


def test_a_wrong_token_is_named(server):
    with pytest.raises(SandboxError, match=f"invalid or missing bearer token; set {TOKEN}"):
        client(server, token="wrong").find(LABELS)


def test_the_clusters_token_is_used_without_another(server):
    assert [] == RayBackend({URL: server.url, CLUSTER_TOKEN: RIGHT_TOKEN}).find(LABELS)


def test_a_missing_url_is_named():
    with pytest.raises(SandboxError, match=f"set {URL} to the URL of its API"):
        RayBackend({})


def run(backend, place):
    return backend.exec(place, ["true"], timeout_seconds=5)


@pytest.mark.parametrize(
    ("method", "path", "act"),
    [
        ("GET", ANY, RayBackend.state),
        ("POST", "/execs$", run),
        ("GET", "/execs/", run),
        ("DELETE", ANY, RayBackend.stop),
    ],
)
def test_an_answer_that_does_not_come_is_an_error(server, place, *, method, path, act):
    server.faults.append(Fault(method, path))

    with pytest.raises(SandboxError, match="Ray did not answer in time; try again later"):
        act(client(server, timeout_seconds=0.5), place)


def test_a_creation_whose_answer_was_lost_makes_one_sandbox(service, server, backend):
    server.faults.append(Fault("POST", "/sandboxes$", carried_out=True))
    with pytest.raises(SandboxError, match="did not answer"):
        client(server, timeout_seconds=0.2).create(SPEC, LABELS, {})

    place = backend.create(SPEC, LABELS, {})

    assert [place] == list(service.sandboxes)
    assert "started" == backend.state(place)


def test_a_deletion_whose_answer_was_lost_is_repeated(server, backend, place):
    server.faults.append(Fault("DELETE", ANY, 502, carried_out=True))
    with pytest.raises(SandboxError, match="try again later"):
        backend.delete(place)

    backend.delete(place)

    assert "gone" == backend.state(place)


def test_a_sandbox_that_goes_midway_is_gone(server, backend, place):
    body = refusal("sandbox_not_found", "no sandbox with id")
    server.faults.append(Fault("GET", "/execs/", 404, body))

    with pytest.raises(SandboxGoneError, match="no sandbox with id"):
        backend.exec(place, ["true"], timeout_seconds=5)


@pytest.mark.parametrize("end", ["error", "terminated"])
def test_a_sandbox_that_does_not_start_is_deleted_and_another_made(service, backend, end):
    """Its token would name the broken one for ever."""
    service.boots_as = ["pending", "pulling", end]
    with pytest.raises(SandboxGoneError, match=f"Ray says {end}"):
        backend.create(SPEC, LABELS, {})
    service.boots_as = ["pending", "running"]

    assert "started" == backend.state(backend.create(SPEC, LABELS, {}))


def test_a_sandbox_that_does_not_start_in_time_is_an_error(service, server):
    service.boots_as = ["pending"]

    with pytest.raises(SandboxError, match=r"Ray says pending after 0\.05 s; try again later"):
        client(server, patience_seconds=0.05).create(SPEC, LABELS, {})


@pytest.mark.parametrize("status", ["timeout", "error"])
def test_a_command_that_ray_did_not_end_is_an_error(server, backend, place, status):
    body = {"exec_id": "ex-1", "status": status, "error": "the container is gone"}
    server.faults.append(Fault("GET", "/execs/", 200, body))

    with pytest.raises(SandboxError, match="Ray did not run the command: the container is gone"):
        backend.exec(place, ["true"], timeout_seconds=5)


def test_a_sandbox_has_what_its_spec_says(service, backend):
    spec = SandboxSpec(backend="ray", image="debian:13", cpus=1.5, memory_mb=2100, network=True)

    backend.create(spec, LABELS, {"A": "b"})

    token = hashlib.sha256(b"a/sandbox-default/1").hexdigest()[:32]
    assert service.bodies == [
        (
            "/api/v1/sandboxes",
            {
                "image": "debian:13",
                "env": {"A": "b"},
                "workdir": "/workspace",
                "network": "public",
                "resources": {"cpu_limit": 1.5, "memory_limit_mb": 2100},
                "labels": LABELS,
                "client_token": f"cueline-{token}",
            },
        )
    ]


async def test_a_session_works_in_it(server, tmp_path, monkeypatch):
    monkeypatch.setenv(URL, server.url)
    monkeypatch.setenv(TOKEN, RIGHT_TOKEN)

    await works_in("ray", tmp_path)


@pytest.fixture(scope="module")
def document():
    """Return what Ray's own app says of itself; it is not started, and needs no cluster."""
    return (
        pytest.importorskip("ray.experimental.sandbox.http.app")
        .create_app(handle_resolver=object())
        .openapi()
    )


def schema(document, name):
    return validator_for({**document, "$ref": f"#/components/schemas/{name}"})


def test_the_server_of_these_tests_has_the_paths_of_rays_app(document, service):
    known = {(method, path) for path, methods in document["paths"].items() for method in methods}

    assert set(service.routes) == known - {("get", "/api/v1/health")}


def test_requests_and_answers_are_those_of_rays_app(document, service, backend, place):
    backend.exec(place, ["true"], environment={"A": "b"}, timeout_seconds=5)
    backend.find(LABELS)

    kinds = {True: "StartExecRequest", False: "CreateSandboxRequest"}
    sent = [(kinds[path.endswith("/execs")], body) for path, body in service.bodies]
    assert {"SandboxInfo", "SandboxList", "ExecStarted", "ExecInfo"} == dict(service.answers).keys()
    for kind, body in [*sent, *service.answers]:
        schema(document, kind).validate(body)
        assert body.keys() <= document["components"]["schemas"][kind]["properties"].keys()
