package main_test

import "testing"

// The replica of the catalogue that orders keeps is damaged, and made anew beside the running operator.
func rebuildMendsTables(t *testing.T, demo *running) {
	orders := demo.database(t, "orders")
	kept := one[string](t, orders, "select json_agg(p order by sku)::text from products p")
	exec1(t, orders, "update products set price_amount = price_amount + 1 where sku = 'CAFE-500G'")
	exec1(t, orders, "delete from products where sku = (select max(sku) from products)")
	exec1(t, orders, "insert into products values ('GHOST', 'nobody sells it', 1, 'BRL', true)")
	wrong := demo.feira(t, "verify")
	wrong.fails(t)
	has(t, wrong.out, "DIFFERENCE", "CAFE-500G", "GHOST")
	damaged := one[string](t, orders, "select json_agg(p order by sku)::text from products p")

	rebuild := func(name string, args ...string) result {
		return demo.feira(t, append([]string{"admin", "rebuild", name}, args...)...)
	}
	dry := rebuild("orders.catalogue", "--dry-run").ok(t)
	has(t, dry, "applied again, 0 of them from the store", "1 missing, 1 excess, 1 different", "a row must not be there: (GHOST,", "a row is (CAFE-500G,", "nothing was changed")
	if now := one[string](t, orders, "select json_agg(p order by sku)::text from products p"); now != damaged {
		t.Errorf("a dry run changed %s to %s", damaged, now)
	}
	has(t, rebuild("orders.catalogue").ok(t), "1 missing, 1 excess, 1 different", "replaced in one transaction; orders.catalogue waited")
	if now := one[string](t, orders, "select json_agg(p order by sku)::text from products p"); now != kept {
		t.Errorf("rebuilt as %s, it was %s", now, kept)
	}
	has(t, rebuild("orders.catalogue").ok(t), "0 missing, 0 excess, 0 different", "nothing to replace")
	has(t, demo.feira(t, "verify", "--settled", "--wait=60s").ok(t), "verify: no difference")
	has(t, demo.feira(t, "admin", "audit", "orders.catalogue").ok(t), "rebuild", "tester", "1 different")

	rebuildMendsMemory(t, demo, rebuild)
	rebuild("inventory.reserve").fails(t, "inventory.reserve cannot be rebuilt", "feira verify")
	rebuild("orders.process").fails(t, "orders.process cannot be rebuilt", "feira admin rebuild orders", "feira verify")
	rebuild("orders.nothing").fails(t, `no operator "orders.nothing"`, "feira admin operators")
}

func rebuildMendsMemory(t *testing.T, demo *running, rebuild func(string, ...string) result) {
	t.Helper()
	// A stream operator loses its memory of the purchases.
	fraud := demo.database(t, "fraud")
	has(t, rebuild("fraud.cards").ok(t), "state of payments/0: ", "compared, none is written again: 0 missing, 0 different", "nothing to replace")
	if n := one[int64](t, fraud, "with gone as (delete from stream_deltas returning 1) select count(*) from gone"); n == 0 {
		t.Error("there was no state to lose")
	}
	has(t, rebuild("fraud.cards", "--dry-run").ok(t), "a row is missing: ", "0 missing, 0 different\n", "nothing was changed")
	has(t, rebuild("fraud.cards").ok(t), "0 missing, 0 different\n", "replaced in one transaction; fraud.cards waited")
	has(t, rebuild("fraud.cards").ok(t), "nothing to replace")
}
