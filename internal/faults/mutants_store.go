package main

var storeMutants = []mutant{}
