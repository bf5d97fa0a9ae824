"""Addresses of storages: what is mistyped is refused, and no password is repeated."""

import pytest

from dobandit import connect
from dobandit.errors import ServiceError, StorageError
from dobandit.storage import open_database


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:/u:SECRET@h/db",
        "postgresql:/u:SECRET@h/file.db",
        "postgresql//u:SECRET@h/file.db",
        "postgresql:u:SECRET",
        "postgres:u:SECRET/file.db",
        "Postgresql+psycopg:u:SECRET@h/db",
        "postgresql://u:SEC@SECRET@h/db",
        "postgresql://u/SECRET@h/db",
        "postgresql://u:SECRET@h:port/db",
        "postgresql://u:SECRET",
        "u:SECRET@h/db",
        "host=h password=SECRET",
        "postgresql://u;SECRET@h/db",
        "postgresql://u SECRET@h/db",
        "postgresql://h/db;password=SECRET",
        "mysql://u:SECRET@h/db",
        "sqlite://u:SECRET@h/file.db",
        "sqlite:///file.db?passwd=SECRET",
    ],
)
def test_a_mistyped_address_is_refused_without_its_password(address):
    with pytest.raises(StorageError, match="Give it in one of these forms") as refused:
        open_database(address)
    assert "SEC" not in str(refused.value)


@pytest.mark.parametrize("option", ["password", "passwd", "PWD", "sslpassword", "sslkey"])
def test_a_password_among_the_options_is_not_shown(option):
    pytest.importorskip("psycopg")
    database = open_database(f"postgresql://u@h/db?{option}=SECRET&sslmode=require")
    assert f"{option}=***" in database.url
    assert "sslmode=require" in database.url
    assert "SECRET" not in database.url
    assert "SECRET" not in str(database.explain(ValueError("no option SECRET")))


@pytest.mark.parametrize("path", ["bypass.db", "sql/spring.db", "home@work/spring.db"])
def test_a_path_that_looks_a_little_like_an_address_is_a_path(path):
    assert open_database(path).url == f"sqlite:///{path}"


@pytest.mark.parametrize(
    "url", ["postgresql://u:SECRET@h/db", "u:SECRET@h", "http://u:SECRET@h", "https://u:SECRET@h/x"]
)
def test_an_address_of_a_service_is_refused_without_its_password(url):
    pytest.importorskip("httpx")
    with pytest.raises(ServiceError, match="a service's address") as refused:
        connect(url, "dob_token")
    assert "SEC" not in str(refused.value)
