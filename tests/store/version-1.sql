BEGIN TRANSACTION;
CREATE TABLE cell (
    workload TEXT NOT NULL, level TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL,
    options TEXT NOT NULL, label TEXT NOT NULL, PRIMARY KEY (workload, level)
) STRICT;
INSERT INTO "cell" VALUES('redis','{"clients": "10"}',0,'redis-benchmark','{"tests":["set","get"],"requests":100000,"clients":10,"value_size":3,"pipeline":1,"keyspace":null}','redis (clients=10)');
INSERT INTO "cell" VALUES('redis','{"clients": "50"}',1,'redis-benchmark','{"tests":["set","get"],"requests":100000,"clients":50,"value_size":3,"pipeline":1,"keyspace":null}','redis (clients=50)');
INSERT INTO "cell" VALUES('cpu','{}',2,'sysbench-cpu','{"threads":1,"duration":10.0,"prime_limit":10000}','cpu');
CREATE TABLE environment (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, kind TEXT NOT NULL, options TEXT NOT NULL, aa_of TEXT
) STRICT;
INSERT INTO "environment" VALUES('native',0,'native','{"cpu_share":null}',NULL);
INSERT INTO "environment" VALUES('host',1,'docker','{"network":"host","publish":false,"publish_on":"gateway"}',NULL);
INSERT INTO "environment" VALUES('native-again',2,'native','{"cpu_share":null}','native');
CREATE TABLE fact (
    scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL
) STRICT;
INSERT INTO "fact" VALUES('host','kernel','6.1',1.79526445385345768922e+09);
CREATE TABLE measurement (
    trial INTEGER NOT NULL REFERENCES trial(id), metric TEXT NOT NULL, unit TEXT NOT NULL,
    better TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (trial, metric)
) STRICT;
INSERT INTO "measurement" VALUES(1,'throughput','Mbit/s','higher',5.0);
INSERT INTO "measurement" VALUES(1,'jitter','ms','lower',0.0);
CREATE TABLE process (
    trial INTEGER NOT NULL REFERENCES trial(id), role TEXT NOT NULL, argv TEXT NOT NULL,
    returncode INTEGER NOT NULL, duration_s REAL NOT NULL, stdout TEXT NOT NULL, stderr TEXT NOT NULL,
    PRIMARY KEY (trial, role)
) STRICT;
INSERT INTO "process" VALUES(1,'client','["iperf3", "-c", "\u00fc x"]',0,1.0,'raw/000001.client.stdout','raw/000001.client.stderr');
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO "run" VALUES('study','small');
INSERT INTO "run" VALUES('question','What does it cost?');
INSERT INTO "run" VALUES('study_text','study: small
question: What does it cost?
baseline: native
environments: {native: {kind: native}, host: {kind: docker, network: host}}
workloads: {redis: {kind: redis-benchmark, clients: [10, 50]}, cpu: {kind: sysbench-cpu}}
equivalence: 3%
seed: 7
');
INSERT INTO "run" VALUES('baseline','native');
INSERT INTO "run" VALUES('equivalence','0.03');
INSERT INTO "run" VALUES('seed','7');
INSERT INTO "run" VALUES('repetitions','{"blocks":10,"target":null,"min":10,"max":60,"budget":null}');
INSERT INTO "run" VALUES('created','1795264453.848514');
INSERT INTO "run" VALUES('run_id','0123456789ab');
CREATE TABLE sample (
    trial INTEGER NOT NULL REFERENCES trial(id), site TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL
) STRICT;
INSERT INTO "sample" VALUES(1,'host','busy_s',0.5);
INSERT INTO "sample" VALUES(1,'client','cpu_s',0.25);
CREATE TABLE trial (
    id INTEGER PRIMARY KEY, block INTEGER NOT NULL, attempt INTEGER NOT NULL, workload TEXT NOT NULL,
    level TEXT NOT NULL, environment TEXT NOT NULL, outcome TEXT NOT NULL, message TEXT NOT NULL,
    started_at REAL NOT NULL, duration_s REAL NOT NULL, measured_s REAL NOT NULL, flags TEXT NOT NULL,
    UNIQUE (block, attempt, workload, level, environment)
) STRICT;
INSERT INTO "trial" VALUES(1,1,0,'redis','{"clients": "10", "pipeline": "1"}','native','ok','',1001.0,1.25,1.0,'["steal 3%", "generator saturated"]');
CREATE INDEX sample_of_trial ON sample(trial);
COMMIT;
PRAGMA user_version=1;
