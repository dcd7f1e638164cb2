-- Authorised payments that repeat another: same card, amount and currency, less than five seconds after it by purchase
-- time. What fraud computes, but for payments that were voided between the two.
--
-- kafka     brokers, host:port,…
-- disorder  minutes:seconds that an authorisation may be behind the latest purchase of its partition; later ones are dropped
-- from      earliest-offset: all history, where there is no checkpoint to go on from
-- until     unbounded, or latest-offset: ends at what is there now
SET 'table.local-time-zone' = 'UTC';

-- windows.sql says how headers and times are read. Every payments event has purchased_at; a tick, which has not, says by
-- its own time that nothing before it is to come.
CREATE TABLE payments (
  `order`          STRING,
  payment          STRING,
  card_fingerprint STRING,
  amount           ROW<amount BIGINT, currency STRING>,
  purchased_at     TIMESTAMP_LTZ(3),
  headers          MAP<STRING, BYTES> METADATA FROM 'headers' VIRTUAL,
  `partition`      INT METADATA FROM 'partition' VIRTUAL,
  ce_source AS CAST(headers['ce_source'] AS STRING),
  ce_type   AS CAST(headers['ce_type'] AS STRING),
  ce_sequence AS CAST(CAST(headers['ce_sequence'] AS STRING) AS BIGINT),
  bought    AS COALESCE(purchased_at,
    CAST(REPLACE(REPLACE(CAST(headers['ce_time'] AS STRING), 'T', ' '), 'Z', '') AS TIMESTAMP_LTZ(3))),
  arrived   AS PROCTIME(),
  WATERMARK FOR bought AS bought - INTERVAL '${disorder}.001' MINUTE TO SECOND(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'payments',
  'properties.bootstrap.servers' = '${kafka}',
  'properties.group.id' = 'feira-flink-duplicates',
  'properties.isolation.level' = 'read_committed',
  'properties.client.id.prefix' = 'feira-flink-duplicates',
  'scan.startup.mode' = '${from:-earliest-offset}',
  'scan.bounded.mode' = '${until:-unbounded}',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);

-- Records that the relay sent again are left out, as windows.sql explains; so are payments whose card has no name.
CREATE TEMPORARY VIEW reached AS
SELECT payment, `order`, bought, card_fingerprint AS card, amount.amount AS cents, amount.currency AS currency,
  `partition`, arrived, ce_sequence, MAX(ce_sequence) OVER (PARTITION BY `partition` ORDER BY arrived) AS reached
FROM payments
WHERE ce_source = '/feira/payments' AND ce_type = 'shop.feira.payment.authorized.v1' AND card_fingerprint <> '';

CREATE TEMPORARY VIEW purchases AS
SELECT payment, `order`, bought, card, cents, currency
FROM (SELECT *, LAG(reached) OVER (PARTITION BY `partition` ORDER BY arrived) AS before FROM reached)
WHERE before IS NULL OR ce_sequence > before;

CREATE TABLE duplicates (
  payment              STRING,
  `order`              STRING,
  purchased_at         TIMESTAMP_LTZ(3),
  duplicate_of_payment STRING,
  duplicate_of_order   STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'flink-duplicates',
  'properties.bootstrap.servers' = '${kafka}',
  'properties.transaction.timeout.ms' = '600000',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'feira-flink-duplicates',
  'key.format' = 'raw',
  'key.fields' = 'order',
  'value.format' = 'json',
  'value.json.timestamp-format.standard' = 'ISO-8601'
);

-- The first purchase of the last five seconds; the purchase itself where there is no other. Time is in milliseconds here,
-- so less than 5 s is 4.999 s. (MATCH_RECOGNIZE finds neighbours only, and costs several times as much.)
INSERT INTO duplicates
SELECT payment, `order`, bought, first_payment, first_order
FROM (
  SELECT payment, `order`, bought, FIRST_VALUE(payment) OVER recent AS first_payment, FIRST_VALUE(`order`) OVER recent AS first_order
  FROM purchases
  WINDOW recent AS (PARTITION BY card, cents, currency ORDER BY bought
    RANGE BETWEEN INTERVAL '4.999' SECOND(1, 3) PRECEDING AND CURRENT ROW)
)
WHERE first_payment <> payment;
