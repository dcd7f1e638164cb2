package main

var shopMutants = []mutant{}
