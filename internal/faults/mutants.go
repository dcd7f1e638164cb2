package main

import "slices"

// mutants are the protections that are taken out one by one, each with the fault test that notices.
var mutants = slices.Concat(storeMutants, operatorMutants, streamMutants, shopMutants, retentionMutants, serviceMutants, adminMutants)
