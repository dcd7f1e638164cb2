with asked as (
  update operator_requests set finished_at = clock_timestamp() where id = $1 and finished_at is null returning id
)
insert into operator_trials (request, "offset", outcome, detail)
select asked.id, t."offset", t.outcome, t.detail from asked, unnest($2::bigint[], $3::text[], $4::text[]) t("offset", outcome, detail)
on conflict do nothing
