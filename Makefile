# Two commands do it all: `make demo` (the main job) and `make test`; `make check` guards main besides.
SHELL := /bin/sh
PY := .venv/bin/python
CODE := src tests interop bench examples scripts
PY41 := .venv41/bin/python
export SPARK_LOCAL_IP := 127.0.0.1
# Where it is set, every process and every worker of Spark would compile its modules anew: seconds each.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check soak cells faces mutants lines versions interop catalogs record-sql bench plots conformance lint docs java postgres shells engines interop-engines interop-tools clean

demo: .venv/.ready java
	$(PY) examples/flights.py

# The first circle, which everybody runs: lint, types, docs, and the cases that find most faults.
# ROOM=spark/write runs the cases of what lies in src/frazil/spark/write alone.
test: .venv/.ready java postgres
ifdef ROOM
	PROCESSES=2 scripts/test.sh test $(PY) $$($(PY) tests/rooms.py $(ROOM))
else
	@$(MAKE) -j2 lint docs
	scripts/test.sh test $(PY)
endif

# The second circle, which guards main besides: what finds faults a second way, and other engines.
check: .venv/.ready .venv41/.ready java postgres shells
ifdef ROOM
	PROCESSES=2 scripts/test.sh check $(PY) $$($(PY) tests/rooms.py $(ROOM))
else
	scripts/test.sh check $(PY)
	scripts/interop.sh check $(PY41)
endif

# The third circle, which goes deep: every combination of choices, long histories, ten times the examples.
soak: .venv/.ready .venv41/.ready java postgres
	FRAZIL_EXAMPLES=10 $(PY) -m pytest tests/format_evolution tests/format_metadata \
		tests/format_predicates tests/planning tests/table/test_table_model.py \
		tests/spark_conditions/test_spark_conditions_random.py
	PROCESSES=2 scripts/test.sh soak $(PY)
	scripts/interop.sh soak $(PY41)

# What each circle ran when it last ran as a whole, in tables; its run says at its end what is missing.
cells: .venv/.ready
	@$(PY) scripts/cells.py

# The page of statements by face, of what each kind of statement does by each face: some minutes.
faces: .venv/.ready java
	rm -rf .circles/faces
	FRAZIL_CIRCLES=.circles/faces $(PY) -m pytest -q tests/spark_catalog/test_catalog_faces.py
	$(PY) scripts/cells.py --faces --records .circles/faces

# Whether the first two circles find faults: src is broken in N places, one at a time. Beforehand, once
# for a commit's src and tests, all their cases run to record which lines each of them ran.
# SEED= repeats a run, AT=path:line tries one place, RECORD=folder takes the record of an older commit.
mutants: .venv/.ready java postgres
	PYTHONPATH=scripts:tests $(PY) -m mutants run $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED)) \
		$(if $(AT),--at $(AT)) $(if $(RECORD),--record $(RECORD))

# How many lines of src the first circle runs, and how many both; ALL=1 names those that none ran.
lines: .venv/.ready java postgres
	PYTHONPATH=scripts:tests $(PY) -m mutants lines $(if $(ALL),--missing) $(if $(RECORD),--record $(RECORD))

# The first two circles on every Spark and every Python of this machine: hours. SPARK=4.0 and PYTHON3=3.12 take
# one, SLICE=1 a few tests of each kind of work, AGAIN=1 what failed in the last run, once it is mended.
versions: .venv/.ready java postgres
	$(PY) scripts/versions.py run $(if $(SPARK),--spark $(SPARK)) $(if $(PYTHON3),--python $(PYTHON3)) $(if $(SLICE),--slice) $(if $(AGAIN),--again)
	$(PY) scripts/versions.py table --write

# What the Java runtime, PyIceberg and DuckDB share with Frazil; `make check` takes a part of it.
interop: .venv/.ready .venv41/.ready java
	scripts/interop.sh all $(PY41)

# ClickHouse, Daft and the server Nessie (1.2 GB): `interop-engines` tests with them, and `interop` skips
# these tests where they are not there.
interop-engines: engines
	$(PY41) -m pytest -p no:cacheprovider -m "not soak" interop/test_interop_nessie.py \
		interop/test_interop_nessie_contract.py interop/test_interop_rest_writers.py \
		interop/test_interop_serve_engines.py

engines: .venv41/.ready java
	@scripts/engines.sh .venvengines $(PY41)

# Servers of catalogs and their files, which are got where they can be had: an HDFS, metastores of Hive, a KDC.
catalogs: .venv41/.ready java
	@scripts/minicluster.sh .jars $(PY41)
	@scripts/metastores.sh .venvmetastores $(PY41)
	@scripts/kerberos.sh .venvkerberos $(PY41)
	$(PY41) -m pytest -p no:cacheprovider interop/catalogs

# dbt, SQLMesh and IPython as they are, on a lake: minutes, and an environment of 1 GB of its own.
interop-tools: .venv/.ready
	@scripts/tools.sh .venvtools $(PY)
	.venvtools/bin/python -m pytest -p no:cacheprovider --confcutdir interop/tools interop/tools

# What the Java runtime makes of the statements in tests/spark_sql/recorded, written below each of them.
record-sql: .venv41/.ready java
	PYTHONPATH=src $(PY41) interop/record_sql_cases.py $(if $(CHECK),--check) $(FILES)

# Other engines' tables, and every row-level case in both modes and versions: half an hour.
conformance: .venv/.ready java
	$(PY) tests/conformance/run.py
	$(PY) tests/conformance/run_row_level.py frazil --show

bench: .venv/.ready .venv41/.ready java
	PYTHONPATH=tests $(PY41) -m bench $(if $(ONLY),--only $(ONLY)) $(if $(ROW),--row $(ROW)) --python43 $(PY)

# The pictures of README and docs/, of the figures in bench/results/.
plots: .venv/.ready
	$(PY) scripts/pictures.py

lint: .venv/.ready
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check -q $(CODE)
	$(PY) -m mypy
	.venv/bin/lint-imports

docs: .venv/.ready
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build -q --strict

# What is not there and cannot be installed is said, and the cases that need it are skipped.
java:
	@scripts/java.sh || echo "cases with Spark are skipped" >&2

postgres:
	@scripts/postgres.sh >/dev/null || echo "cases with PostgreSQL are skipped" >&2

shells:
	@scripts/shells.sh || echo "cases with these shells are skipped" >&2

.venv/.ready: requirements/spark43.txt
	scripts/environment.sh .venv requirements/spark43.txt

.venv40/.ready .venv41/.ready .venv42/.ready: .venv%/.ready: requirements/spark%.txt
	scripts/environment.sh .venv$* requirements/spark$*.txt

clean:
	rm -rf .venv .venv4? .venv4?-python* .venvengines .venvtools site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants
