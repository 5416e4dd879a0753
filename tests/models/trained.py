# SPDX-License-Identifier: Apache-2.0
"""Models that scikit-learn trains on its own data sets when the tests run, converted by skl2onnx.

Each function gives an onnx.ModelProto whose input is "X", [rows, features] of float32.
"""

import warnings

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

OPSETS = {"": 18, "ai.onnx.ml": 3}


def _converted(model, rows, **options):
    given = {id(model): options} if options else None
    return to_onnx(model, rows[:1].astype(np.float32), target_opset=OPSETS, options=given)


def _data(name, strings=False):
    found = getattr(datasets, f"load_{name}")()
    return found.data.astype(np.float32), found.target_names[found.target] if strings else found.target


def logistic():
    """Names of classes; their probabilities as maps."""
    x, y = _data("iris", strings=True)
    return _converted(LogisticRegression(max_iter=1000).fit(x, y), x)


def forest():
    """80 trees behind a scaler, with names of classes."""
    x, y = _data("wine", strings=True)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(80, random_state=0)).fit(x, y)
    return _converted(model, x, zipmap=False)


def forest_regression():
    x, y = _data("diabetes")
    return _converted(RandomForestRegressor(60, max_depth=8, random_state=0).fit(x, y), x)


def boosting():
    """Trees for two classes: one score."""
    x, y = _data("breast_cancer")
    return _converted(GradientBoostingClassifier(n_estimators=60, random_state=0).fit(x, y), x, zipmap=False)


def histogram_boosting():
    """Trees that say where what is missing goes."""
    x, y = _data("diabetes")
    return _converted(HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(x, y), x)


def svc():
    """A scaler, principal components, and support vectors whose pairs of classes become probabilities."""
    x, y = _data("wine", strings=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn wants to drop the probabilities
        model = make_pipeline(StandardScaler(), PCA(6), SVC(probability=True, random_state=0)).fit(x, y)
    return _converted(model, x, zipmap=False)


def svr():
    x, y = _data("diabetes")
    return _converted(SVR(kernel="poly", degree=2, C=50).fit(x, y), x)


def k_means():
    x, _ = _data("wine")
    return _converted(make_pipeline(StandardScaler(), KMeans(5, n_init=3, random_state=0)).fit(x), x)


def mlp():
    x, y = _data("digits")
    return _converted(MLPClassifier((64, 32), max_iter=60, random_state=0).fit(x, y), x, zipmap=False)


def neighbors():
    x, y = _data("iris", strings=True)
    return _converted(KNeighborsClassifier(7).fit(x, y), x, zipmap=False)


def _words(rows):
    """Numbers as words: which quarter of the range they are in."""
    return np.array(["low", "rather low", "rather high", "h\u00f6chst"])[np.clip(rows, 0, 3).astype(int)]


def _wine_words(values):
    x, _ = _data("wine")
    return _words((values - x.min(0)) / (x.max(0) - x.min(0)) * 4)


def categories():
    """Columns of strings to columns of 0 and 1, trees, and names of classes."""
    x, y = _data("wine", strings=True)
    words = _wine_words(x)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestClassifier(40, random_state=0)).fit(words, y)
    given = [("X", StringTensorType([None, words.shape[1]]))]
    return to_onnx(model, initial_types=given, target_opset=OPSETS, options={id(model): {"zipmap": False}})


def word_rows(random, count):
    """Rows of such words, among them some that no category is."""
    x, _ = _data("wine")
    words = _wine_words(x.min(0) + random.uniform(0, 1, (count, x.shape[1])) * (x.max(0) - x.min(0))).astype("<U12")
    words[random.uniform(0, 1, words.shape) < 0.05] = "unheard of"
    return words


ALL = {make.__name__: make for make in (logistic, forest, forest_regression, boosting, histogram_boosting, svc, svr,
                                         k_means, mlp, neighbors, categories)}


def rows(name, random, count):
    """Rows between the least and the largest values of a data set."""
    x, _ = _data(name)
    return (x.min(0) + random.uniform(0, 1, (count, x.shape[1])) * (x.max(0) - x.min(0))).astype(np.float32)
