"""Which repository the originals come from: the user's settings, read as Maven reads them."""

from __future__ import annotations

import importlib.util
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from comparison.originals import download
from comparison.originals.jars import Jar, download_by_name

NAME_SPACE = ' xmlns="http://maven.apache.org/SETTINGS/1.2.0"'


@pytest.fixture(autouse=True)
def no_setting(monkeypatch):
    monkeypatch.delenv(download.REPOSITORY_VARIABLE, raising=False)


@pytest.fixture
def settings(tmp_path):
    def write(mirrors: str, servers: str = "", name_space: str = NAME_SPACE):
        path = tmp_path / "settings.xml"
        path.write_text(f"<settings{name_space}><servers>{servers}</servers><mirrors>{mirrors}</mirrors></settings>")
        return path

    return write


def mirror(of: str, *, name: str = "m", more: str = "") -> str:
    return f"<mirror><id>{name}</id><mirrorOf>{of}</mirrorOf><url> https://mirror.test/{name} </url>{more}</mirror>"


def test_without_any_setting_the_resolvers_own_repository_is_used(tmp_path):
    assert download.repository(tmp_path / "settings.xml") is None


def test_the_variable_overrides_the_settings_file(monkeypatch, settings):
    path = settings(mirror("*"))
    monkeypatch.setenv(download.REPOSITORY_VARIABLE, "https://chosen.test/maven/")
    assert download.repository(path) == "https://chosen.test/maven"


@pytest.mark.parametrize("of", ["*", "central", "external:*", "other, central"])
@pytest.mark.parametrize("name_space", ["", NAME_SPACE])
def test_a_mirror_of_central_is_used_instead_of_it(settings, of, name_space):
    assert download.repository(settings(mirror(of), name_space=name_space)) == "https://mirror.test/m"


@pytest.mark.parametrize("of", ["other", "*,!central", ""])
def test_a_mirror_of_another_repository_is_not_used(settings, of):
    assert download.repository(settings(mirror(of))) is None


def test_a_blocked_mirror_is_skipped_and_the_next_one_is_used(settings):
    blocked = mirror("*", name="a", more="<blocked>true</blocked>")
    assert download.repository(settings(blocked + mirror("*", name="b") + mirror("*", name="c"))) == (
        "https://mirror.test/b"
    )


def test_user_and_password_of_the_mirrors_server_are_sent(monkeypatch, settings):
    monkeypatch.setenv("MIRROR_PASSWORD", "p/w@1")
    servers = (
        "<server><id>other</id><username>nobody</username></server>"
        "<server><id>m</id><username>me</username><password>${env.MIRROR_PASSWORD}</password></server>"
    )
    assert download.repository(settings(mirror("*"), servers)) == "https://me:p%2Fw%401@mirror.test/m"


needs_jgo = pytest.mark.skipif(importlib.util.find_spec("jgo") is None, reason="jgo is not installed (extra originals)")

SERVED = {"/maven/org/example/one/1.0/one-1.0.jar": b"bytecode"}


@pytest.fixture
def repository(monkeypatch, tmp_path):
    """A repository on loopback; returns its address, which is also in the settings."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = SERVED.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    port = server.server_address[1]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(download.REPOSITORY_VARIABLE, f"http://user:secret@127.0.0.1:{port}/maven")
    yield port
    server.shutdown()
    thread.join()
    server.server_close()


@needs_jgo
def test_jars_are_fetched_by_coordinates_and_a_missing_one_is_reported_without_the_password(repository, tmp_path):
    wanted = [Jar("org.example", name, "1.0", "0" * 64, 8) for name in ("one", "two")]
    folder = tmp_path / "arriving"
    folder.mkdir()
    got = download_by_name(wanted, folder)
    one, two = (got[jar.coordinates] for jar in wanted)
    assert not isinstance(one, str)
    assert one.read_bytes() == b"bytecode"
    assert folder in one.parents
    assert two == "the repository does not have it"


@needs_jgo
def test_a_repository_that_refuses_connections_is_reported_without_the_password(monkeypatch, tmp_path, unused_port):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(download.REPOSITORY_VARIABLE, f"http://user:secret@127.0.0.1:{unused_port}/maven")
    wanted = Jar("org.example", "one", "1.0", "0" * 64, 8)
    said = download_by_name([wanted], tmp_path)[wanted.coordinates]
    assert isinstance(said, str)
    assert "ConnectionError" in said
    assert "secret" not in said
