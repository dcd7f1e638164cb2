package main

var operatorMutants = []mutant{}
