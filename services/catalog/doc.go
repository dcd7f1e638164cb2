// Package catalog knows the products and what they cost.
//
// It is plain create, read, update, delete with an outbox: a row in a table and, in the same transaction, the event
// product.changed with the whole product. Not everything needs event sourcing. The topic is compacted, so the latest
// event of a product is the product, and any service can keep a replica.
//
// Stream product-<sku>, one version per change.
package catalog
