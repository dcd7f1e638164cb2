-- What each account spent and got back, per currency, in windows of five minutes of event time: what analytics computes.
--
-- kafka     brokers, host:port,…
-- disorder  minutes:seconds that an event may be behind the latest of its partition; later ones are dropped
-- from      earliest-offset: all history, where there is no checkpoint to go on from
-- until     unbounded, or latest-offset: ends at what is there now
SET 'table.local-time-zone' = 'UTC';

-- Events are CloudEvents in binary mode: attributes are headers, the value is the data. Times are RFC 3339 with Z and none
-- to nine digits of a fraction, which no pattern of TO_TIMESTAMP_LTZ takes; CAST does, without T and Z.
-- An event exactly at the watermark would be late already, hence the millisecond.
CREATE TABLE payments (
  customer     STRING,
  amount       ROW<amount BIGINT, currency STRING>,
  refunded     ROW<amount BIGINT, currency STRING>,
  headers      MAP<STRING, BYTES> METADATA FROM 'headers' VIRTUAL,
  `partition`  INT METADATA FROM 'partition' VIRTUAL,
  ce_source AS CAST(headers['ce_source'] AS STRING),
  ce_type   AS CAST(headers['ce_type'] AS STRING),
  ce_sequence AS CAST(CAST(headers['ce_sequence'] AS STRING) AS BIGINT),
  ce_time   AS CAST(REPLACE(REPLACE(CAST(headers['ce_time'] AS STRING), 'T', ' '), 'Z', '') AS TIMESTAMP_LTZ(3)),
  arrived   AS PROCTIME(),
  WATERMARK FOR ce_time AS ce_time - INTERVAL '${disorder}.001' MINUTE TO SECOND(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'payments',
  'properties.bootstrap.servers' = '${kafka}',
  'properties.group.id' = 'feira-flink-windows',
  'properties.isolation.level' = 'read_committed',
  'properties.client.id.prefix' = 'feira-flink-windows',
  'scan.startup.mode' = '${from:-earliest-offset}',
  'scan.bounded.mode' = '${until:-unbounded}',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);

-- Only now are ticks and other types left out: each moved its partition's watermark when it was read.
-- A relay that crashed sends its last records again. In a partition positions ascend, so what is not beyond the highest
-- position so far was there before.
CREATE TEMPORARY VIEW reached AS
SELECT customer AS account, ce_time, ce_type = 'shop.feira.payment.refunded.v1' AS is_refund,
  COALESCE(refunded.amount, amount.amount) AS amount, COALESCE(refunded.currency, amount.currency) AS currency,
  `partition`, arrived, ce_sequence, MAX(ce_sequence) OVER (PARTITION BY `partition` ORDER BY arrived) AS reached
FROM payments
WHERE ce_source = '/feira/payments' AND ce_type IN ('shop.feira.payment.captured.v1', 'shop.feira.payment.refunded.v1');

CREATE TEMPORARY VIEW money AS
SELECT account, currency, ce_time, is_refund, amount
FROM (SELECT *, LAG(reached) OVER (PARTITION BY `partition` ORDER BY arrived) AS before FROM reached)
WHERE before IS NULL OR ce_sequence > before;

CREATE TABLE spend (
  account      STRING,
  currency     STRING,
  window_start TIMESTAMP_LTZ(3),
  window_end   TIMESTAMP_LTZ(3),
  payments     BIGINT,
  captured     BIGINT,
  refunds      BIGINT,
  refunded     BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = 'flink-spend',
  'properties.bootstrap.servers' = '${kafka}',
  'properties.transaction.timeout.ms' = '600000',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'feira-flink-windows',
  'key.format' = 'raw',
  'key.fields' = 'account',
  'value.format' = 'json',
  'value.json.timestamp-format.standard' = 'ISO-8601'
);

INSERT INTO spend
SELECT account, currency, CAST(window_start AS TIMESTAMP_LTZ(3)), CAST(window_end AS TIMESTAMP_LTZ(3)),
  COUNT(*) FILTER (WHERE NOT is_refund), COALESCE(SUM(amount) FILTER (WHERE NOT is_refund), 0),
  COUNT(*) FILTER (WHERE is_refund), COALESCE(SUM(amount) FILTER (WHERE is_refund), 0)
FROM TABLE(TUMBLE(TABLE money, DESCRIPTOR(ce_time), INTERVAL '5' MINUTES))
GROUP BY account, currency, window_start, window_end;
