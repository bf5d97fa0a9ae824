"""How many SQL statements a page of an experiment takes that nobody has looked at since the service started."""

import pytest
import sqlalchemy as sa

import dobandit as dob
from dobandit.storage import open_storage
from helpers.pages import FUNNEL, Visit

MOST = 12


@pytest.mark.parametrize("closed", [20, 2_700])
def test_a_cold_page_takes_few_statements(tmp_path, closed):
    graph, url = dob.parse_graph(FUNNEL, "edgelist"), f"sqlite:///{tmp_path}/spring.db"
    experiment = dob.create_experiment("spring", graph, budget=1, storage=url, seed=1)
    for i in range(5):
        trial = experiment.ask()
        experiment.tell(trial, {"email": 0, "coupon": i % 2, "visit": 1, "buy": i % 2, **trial.do})
    for i in range(closed - 5):
        do = {"email": 1} if i % 3 else {"coupon": 1}
        experiment.record(do, {"email": 0, "coupon": 0, "visit": i % 2, "buy": i % 5 % 2, **do})
    experiment.close()
    storage, seen = open_storage(url), []
    sa.event.listen(storage.database.engine, "before_cursor_execute", lambda *words: seen.append(words[2]))
    visit = Visit(storage)
    assert seen == []
    page = visit.get("/experiments/1").text
    assert f"{closed:,}" in page
    assert len(seen) <= MOST, "\n".join(seen)
    seen.clear()
    visit.get("/experiments/1")
    assert len(seen) <= 6, "\n".join(seen)
    storage.close()
