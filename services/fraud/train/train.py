"""Trains the model of the fraud service on exported features and the labels of the simulated shoppers.

    train.py --features features.csv --labels labels.csv --out model.json

Prints precision and recall of the rules alone, the model alone and both, on cards that training never saw, and records
them in the model's file. The same input and seed give the same model.
"""

import argparse
import csv
import datetime
import importlib.metadata
import json
import math
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.preprocessing import StandardScaler

# Columns of the exported file that are no features.
BEFORE = ["order", "card", "purchased_at"]
AFTER = ["score", "held", "rules"]
HONEST = "honest"
# Rules of accidents, not of fraud: a double click is held whoever clicks.
ACCIDENTS = {"duplicate_purchase"}
EXAMPLES = 5
LIBRARIES = ["numpy", "scikit-learn", "scipy"]


def read(features_path, labels_path):
    """Joins features and labels by order. What has no label was bought by nobody simulated, and is left out."""
    with open(labels_path, newline="") as f:
        labels = {row["order"]: row["label"] for row in csv.DictReader(f)}
    with open(features_path, newline="") as f:
        reader = csv.DictReader(f)
        columns = reader.fieldnames or []
        if columns[:3] != BEFORE or columns[-3:] != AFTER:
            sys.exit(f"{features_path}: expected the columns {BEFORE}, features, {AFTER}; got {columns}")
        names = columns[3:-3]
        rows = [row for row in reader if row["order"] in labels]
    if not rows:
        sys.exit("no order is in both files; were they made by the same run?")
    x = np.array([[float(row[name]) for name in names] for row in rows])
    kind = np.array([labels[row["order"]] for row in rows])
    card = np.array([row["card"] for row in rows])
    rules = np.array([row["held"] == "1" and bool(set(row["rules"].split()) - ACCIDENTS) for row in rows])
    return names, x, kind, card, rules


def figure(found, fraud):
    """Precision and recall of what was found."""
    return {
        "precision": round(float(precision_score(fraud, found, zero_division=0)), 4),
        "recall": round(float(recall_score(fraud, found, zero_division=0)), 4),
    }


def train(args):
    names, x, kind, card, rules = read(args.features, args.labels)
    fraud = kind != HONEST
    if len(set(fraud)) < 2:
        sys.exit("fraudulent and honest orders are both needed; run the demo with --thieves")
    # Whole cards are held out, since the purchases of one thief are alike; of every kind of label about as many.
    fit, held = next(StratifiedGroupKFold(args.parts, shuffle=True, random_state=args.seed).split(x, kind, card))
    scaler = StandardScaler().fit(x[fit])
    model = LogisticRegression(C=1.0, max_iter=2000, random_state=args.seed).fit(scaler.transform(x[fit]), fraud[fit])
    probability = model.predict_proba(scaler.transform(x))[:, 1]
    objects = probability >= args.threshold
    figures = {
        "rules": figure(rules[held], fraud[held]),
        "model": figure(objects[held], fraud[held]),
        "both": figure((rules | objects)[held], fraud[held]),
    }
    report(kind[held], {"rules": rules[held], "model": objects[held], "both": (rules | objects)[held]}, figures, len(fit))
    # The examples show the model from its surest no to its surest yes.
    shown = np.argsort(probability, kind="stable")[np.linspace(0, len(x) - 1, EXAMPLES).astype(int)]
    return {
        "kind": "logistic_regression",
        "features": names,
        "means": scaler.mean_.tolist(),
        "deviations": scaler.scale_.tolist(),
        "coefficients": model.coef_[0].tolist(),
        "intercept": float(model.intercept_[0]),
        "training": {
            "date": args.date,
            "rows": len(fraud),
            "fraudulent": int(fraud.sum()),
            "held_out": len(held),
            "seed": args.seed,
            "threshold": args.threshold,
            "figures": figures,
            "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES}
            | {"python": ".".join(map(str, sys.version_info[:3]))},
        },
        "examples": [{"features": x[i].tolist(), "probability": float(probability[i])} for i in shown],
    }


def report(kind, found, figures, fitted):
    """Prints what was found of each kind, since recall alone hides what is missed."""
    print(f"trained on {fitted} purchases; of {len(kind)} held out, {(kind != HONEST).sum()} are fraud")
    kinds = sorted(set(kind) - {HONEST})
    print(f"{'':8}{'precision':>10}{'recall':>8}   found of each kind")
    for who, hits in found.items():
        each = ", ".join(f"{k} {hits[kind == k].sum()}/{(kind == k).sum()}" for k in kinds)
        print(f"{who:8}{figures[who]['precision']:>10.3f}{figures[who]['recall']:>8.3f}   {each}; honest {hits[kind == HONEST].sum()}/{(kind == HONEST).sum()}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", required=True, help="written by feira admin fraud features")
    parser.add_argument("--labels", required=True, help="written by feira demo --thieves … --labels")
    parser.add_argument("--out", required=True, help="the model to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", type=int, default=3, help="one of so many parts is never seen in training")
    parser.add_argument("--threshold", type=float, default=0.9, help="probability from which on the model objects")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    return parser.parse_args()


def main():
    args = arguments()
    model = train(args)
    numbers = model["means"] + model["deviations"] + model["coefficients"] + [model["intercept"]]
    if not all(map(math.isfinite, numbers)):
        sys.exit("the model has numbers that are not finite; nothing was written")
    with open(args.out, "w") as f:
        json.dump(model, f, indent=2, allow_nan=False)
        f.write("\n")
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
