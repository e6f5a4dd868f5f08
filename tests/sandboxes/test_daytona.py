import httpx2
import pytest
from msgspec.structs import replace

from cueline.errors import SandboxError, SandboxGoneError
from cueline.events.sandbox import SandboxSpec
from cueline.sandboxes.daytona import DAYTONA, GONE, KEY, STARTED, STOPPED, URL, DaytonaBackend
from cueline.testing.sandbox_contract import SandboxContract
from tests.sandboxes import daytona_fields as fields
from tests.sandboxes.daytona_server import KEY as RIGHT_KEY
from tests.sandboxes.daytona_server import daytona_server
from tests.sandboxes.session import works_in
from tests.sandboxes.vendor_server import Fault, served

SPEC = SandboxSpec(backend="daytona")
LABELS = {"cueline-log": "a", "cueline-sandbox": "sandbox-default/1"}
ANY = r"/api/sandbox/[^/]+$"


@pytest.fixture
def vendor(tmp_path):
    daytona, server = daytona_server(tmp_path)
    with served(server):
        yield daytona, server


@pytest.fixture
def daytona(vendor):
    return vendor[0]


@pytest.fixture
def server(vendor):
    return vendor[1]


def client(server, key=RIGHT_KEY, **how):
    vendor = replace(DAYTONA, poll_seconds=0.01, **how)
    return DaytonaBackend({KEY: key, URL: f"{server.url}/api"}, vendor=vendor)


@pytest.fixture
def backend(server):
    return client(server)


@pytest.fixture
def place(backend):
    place = backend.create(SPEC, LABELS, {})
    yield place
    backend.delete(place)


class TestDaytona(SandboxContract):
    @pytest.fixture
    def backend(self, server):
        return client(server)

    @pytest.fixture
    def spec(self):
        return SPEC


BUSY = {"statusCode": 429, "message": "ThrottlerException: Too Many Requests"}
FAULTS = [
    (401, {"message": "Invalid credentials"}, f"401: Invalid credentials; set {KEY} to a key"),
    (403, {"message": "Access denied"}, f"403: Access denied; set {KEY} to a key"),
    (429, BUSY, "429: ThrottlerException: Too Many Requests; try again later"),
    (500, {"message": "Internal server error"}, "500: Internal server error; try again later"),
    (502, "Bad Gateway", "502: Bad Gateway; try again later"),
    (400, {"message": "Total memory limit exceeded"}, "400: Total memory limit exceeded; change"),
]


@pytest.mark.parametrize(("status", "body", "told"), FAULTS)
def test_a_refusal_has_the_words_of_the_vendor_and_a_next_step(
    server, backend, place, *, status, body, told
):
    server.faults.append(Fault("GET", ANY, status, body))

    with pytest.raises(SandboxError, match=told) as raised:
        backend.exec(place, ["true"], timeout_seconds=5)

    assert not isinstance(raised.value, SandboxGoneError)
    assert raised.value.place == place


def test_a_wrong_key_is_named(server):
    with pytest.raises(SandboxError, match=f"Invalid credentials; set {KEY} to a key"):
        client(server, key="dtn_wrong").find(LABELS)


def test_a_missing_key_is_named():
    with pytest.raises(SandboxError, match=f"set {KEY} to a key of Daytona"):
        DaytonaBackend({})


@pytest.mark.parametrize(
    ("method", "path", "act"),
    [
        ("GET", ANY, DaytonaBackend.state),
        ("POST", "/stop$", DaytonaBackend.stop),
        ("POST", "/last-activity$", DaytonaBackend.keep_alive),
        ("DELETE", ANY, DaytonaBackend.delete),
    ],
)
def test_an_answer_that_does_not_come_is_an_error(server, place, *, method, path, act):
    server.faults.append(Fault(method, path))

    with pytest.raises(SandboxError, match="Daytona did not answer in time; try again later"):
        act(client(server, timeout_seconds=0.2), place)


def test_a_creation_whose_answer_was_lost_makes_one_sandbox(daytona, server, backend):
    server.faults.append(Fault("POST", "/api/sandbox$", carried_out=True))
    with pytest.raises(SandboxError, match="did not answer"):
        client(server, timeout_seconds=0.2).create(SPEC, LABELS, {})

    place = backend.create(SPEC, LABELS, {})

    assert [place] == list(daytona.sandboxes)
    assert "started" == backend.state(place)


def test_two_creations_at_a_time_make_one_sandbox(daytona, server, backend, place):
    server.faults.append(Fault("GET", ANY, 404, {"message": "not found"}))

    with pytest.raises(SandboxError, match="already exists"):
        backend.create(SPEC, LABELS, {})

    assert [place] == list(daytona.sandboxes)


def test_a_stop_whose_answer_came_twice_stops(daytona, server, backend, place):
    server.faults.append(Fault("POST", "/stop$", 502, carried_out=True))
    with pytest.raises(SandboxError, match="try again later"):
        backend.stop(place)

    backend.stop(place)

    assert "stopped" == backend.state(place)


def test_a_sandbox_that_goes_midway_is_gone(server, backend, place):
    server.faults.append(Fault("POST", "/process/execute", 404, {"message": "no such sandbox"}))

    with pytest.raises(SandboxGoneError, match="no such sandbox"):
        backend.exec(place, ["true"], timeout_seconds=5)


def test_a_sandbox_is_not_gone_because_the_url_is_wrong(server, backend, place):
    server.faults.append(Fault("GET", ANY, 404, text="<html>nginx</html>"))

    with pytest.raises(SandboxError, match=f"is {URL} right") as raised:
        backend.state(place)

    assert not isinstance(raised.value, SandboxGoneError)


def test_an_answer_that_is_no_json_is_an_error(server, backend, place):
    server.faults.append(Fault("GET", ANY, 200, text="<html>the dashboard</html>"))

    with pytest.raises(SandboxError, match=f"did not answer in JSON; is {URL} right"):
        backend.state(place)


def test_a_server_that_is_not_there_is_an_error():
    nowhere = DaytonaBackend({KEY: "dtn", URL: "http://127.0.0.1:9/api"})

    with pytest.raises(SandboxError, match=f"Daytona cannot be reached .*{URL}"):
        nowhere.find(LABELS)


@pytest.mark.parametrize("state", ["archived", "destroyed", "error", "build_failed"])
def test_a_state_from_which_nothing_starts_is_gone_and_replaced(daytona, backend, place, state):
    """003-033."""
    daytona.sandboxes[place] |= {"state": state, "errorReason": "the runner was lost"}

    assert "gone" == backend.state(place)
    with pytest.raises(SandboxGoneError, match=f"Daytona says {state} .the runner was lost"):
        backend.start(place)
    fresh = backend.create(SPEC, LABELS, {})
    assert fresh != place
    assert "started" == backend.state(fresh)


def test_a_sandbox_that_does_not_start_in_time_is_an_error(daytona, server):
    daytona.starts_as = ["pulling_snapshot"]

    with pytest.raises(SandboxError, match=r"Daytona says pulling_snapshot after 0\.05 s"):
        client(server, patience_seconds=0.05).create(SPEC, LABELS, {})


def test_a_stopped_sandbox_runs_nothing(backend, place):
    backend.stop(place)

    with pytest.raises(SandboxError, match="it is stopped; start it first"):
        backend.exec(place, ["true"], timeout_seconds=5)


def test_an_image_without_the_shells_tools_is_an_error(server, backend, place):
    body = {"exitCode": 127, "result": "sh: 1: setsid: not found\n"}
    server.faults.append(Fault("POST", "/process/execute", 200, body))

    with pytest.raises(SandboxError, match="the image needs sh, setsid"):
        backend.exec(place, ["true"], timeout_seconds=5)


def test_only_the_beginning_of_a_long_output_is_given_back(backend, place):
    ended = backend.exec(place, ["head", "-c", "7000000", "/dev/zero"], timeout_seconds=60)

    assert (7_000_000, 6 * 1024 * 1024) == (ended.size, len(ended.output))


def test_a_command_that_is_missing_and_one_that_is_killed_have_the_codes_of_a_shell(backend, place):
    killed = backend.exec(place, ["sh", "-c", "kill -TERM $$"], timeout_seconds=60)

    assert 127 == backend.exec(place, ["no-such-command"], timeout_seconds=60).exit_code
    assert (143, False) == (killed.exit_code, killed.timed_out)


def test_the_shell_leaves_no_file(daytona, backend, place, tmp_path):
    seen = backend.exec(
        place, ["sh", "-c", "cat; ls -d /tmp/cueline-*"], stdin=b"-", timeout_seconds=9
    )
    given = seen.output.decode().removeprefix("-").split()

    left = backend.exec(place, ["ls", "-d", *given], timeout_seconds=9)

    assert given
    assert b"No such file" in left.output


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        ("", {}),
        ("snapshot:mine", {"snapshot": "mine"}),
        (
            "debian:13",
            {"buildInfo": {"dockerfileContent": "FROM debian:13\n"}, "cpu": 2, "memory": 3},
        ),
    ],
)
def test_a_sandbox_has_what_its_spec_says(daytona, backend, image, wanted):
    """003-042: without a use for 60 minutes it stops by itself."""
    spec = SandboxSpec(backend="daytona", image=image, cpus=1.5, memory_mb=2100)

    backend.create(spec, LABELS, {"A": "b"})

    body = dict(daytona.bodies)["/api/sandbox"]
    assert body == {
        "name": body["name"],
        "labels": LABELS,
        "env": {"A": "b"},
        "networkBlockAll": True,
        "autoStopInterval": 60,
        "autoArchiveInterval": 0,
        **wanted,
    }


async def test_a_session_works_in_it(server, tmp_path, monkeypatch):
    monkeypatch.setenv(KEY, RIGHT_KEY)
    monkeypatch.setenv(URL, f"{server.url}/api")

    await works_in("daytona", tmp_path)


def test_a_volume_that_fails_is_an_error(daytona, backend):
    backend.volume("cache")
    daytona.volumes["cache"] |= {"state": "error", "errorReason": "no space"}

    with pytest.raises(SandboxError, match=r"the volume is error \(no space\)"):
        backend.volume("cache")


def test_all_pages_are_found(backend):
    log = {"cueline-log": "many"}
    made = {backend.create(SPEC, {**log, "cueline-sandbox": f"s/{n}"}, {}) for n in range(5)}

    assert made == {each.place for each in backend.find(log)}


def test_requests_and_answers_have_the_fields_of_the_vendors_client(daytona, server, backend):
    spec = SandboxSpec(backend="daytona", image="debian:13", volume="cache")
    place = backend.create(spec, LABELS, {})
    backend.exec(place, ["true"], timeout_seconds=5)
    backend.keep_alive(place)

    for path, body in daytona.bodies:
        [known] = [names for end, names in fields.REQUESTS.items() if path.endswith(end)]
        assert body.keys() <= set(known.split()), path
    wish = dict(daytona.bodies)["/api/sandbox"]
    assert wish["buildInfo"].keys() <= set(fields.BUILD_INFO.split())
    assert wish["volumes"][0].keys() <= set(fields.SANDBOX_VOLUME.split())
    key = {"Authorization": f"Bearer {RIGHT_KEY}"}
    with httpx2.Client(base_url=f"{server.url}/api", headers=key) as http:
        page = http.get("/sandbox", params={"labels": "{}"}).json()
        sandbox = http.get(f"/sandbox/{place}").json()
        volume = http.get("/volumes/by-name/cache").json()
    assert page.keys() == set(fields.LIST_SANDBOXES_RESPONSE.split())
    assert page["items"][0].keys() >= set(fields.SANDBOX_LIST_ITEM.split())
    assert sandbox.keys() >= set(fields.SANDBOX.split())
    assert volume.keys() == set(fields.VOLUME_DTO.split())


def test_every_state_of_the_vendor_is_known_or_passes():
    assert set(fields.STATES.split()) == STARTED | STOPPED | GONE | set(fields.PASSING.split())
