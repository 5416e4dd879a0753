# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml."""


from draws import F32, I64
from rules import given, rule

ML = "ai.onnx.ml"


def _rows(b, columns=None):
    columns = columns or b.draws.between(1, 5)
    return b.pick([F32], (2, 2), lambda v: v.shape[1] == columns and v.shape[0] > 0, shape=(b.draws.between(1, 4), columns)), columns


@rule("Binarizer", domain=ML)
def binarizer(b, schema):
    return b.node("Binarizer", [_rows(b)[0]], given(b.draws, threshold=0.5), domain=ML)


@rule("Scaler", domain=ML)
def scaler(b, schema):
    x, columns = _rows(b)
    count = b.draws.choose([1, columns])
    return b.node("Scaler", [x], {"offset": [b.draws.real(-1, 1) for _ in range(count)], "scale": [b.draws.real(0.5, 2) for _ in range(count)]}, domain=ML)


@rule("Normalizer", domain=ML)
def normalizer(b, schema):
    return b.node("Normalizer", [_rows(b)[0]], {"norm": b.draws.choose(["MAX", "L1", "L2"])}, domain=ML)


@rule("Imputer", domain=ML)
def imputer(b, schema):
    x, columns = _rows(b)
    return b.node("Imputer", [x], {"imputed_value_floats": [float(i) for i in range(b.draws.choose([1, columns]))], "replaced_value_float": b.draws.choose([0.0, float("nan")])}, domain=ML)


@rule("ArrayFeatureExtractor", domain=ML)
def extractor(b, schema):
    x, columns = _rows(b)
    return b.node("ArrayFeatureExtractor", [x, b.indices((b.draws.between(1, 3),), 0, columns)], domain=ML)


@rule("FeatureVectorizer", domain=ML)
def vectorizer(b, schema):
    x, columns = _rows(b)
    return b.node("FeatureVectorizer", [x, b.like(F32, (x.shape[0], 2))], {"inputdimensions": [columns, 2]}, domain=ML)


@rule("LinearRegressor", domain=ML)
def regressor(b, schema):
    x, columns = _rows(b)
    targets = b.draws.between(1, 3)
    attributes = {"coefficients": [b.draws.real(-1, 1) for _ in range(columns * targets)], "targets": targets}
    return b.node("LinearRegressor", [x], {**attributes, **given(b.draws, intercepts=[0.5] * targets)}, domain=ML)


@rule("LabelEncoder", domain=ML)
def labels(b, schema):
    x = b.pick([I64], (1, 3))
    kind = b.draws.choose(["values_int64s", "values_floats", "values_strings"])
    values = {"values_int64s": [5, -1, 7], "values_floats": [0.5, 2.0, -1.0], "values_strings": ["a", "b", "a"]}[kind]
    return b.node("LabelEncoder", [x], {"keys_int64s": [0, 1, 3], kind: values}, domain=ML)


@rule("OneHotEncoder", domain=ML)
def one_hot(b, schema):
    return b.node("OneHotEncoder", [b.pick([I64], (1, 3))], {"cats_int64s": [0, 1, 2, 4]}, domain=ML)


@rule("TreeEnsembleRegressor", domain=ML)
def trees(b, schema):
    x, columns = _rows(b)
    targets, rows = b.draws.between(1, 2), {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
    leaves = []
    for tree in range(b.draws.between(1, 3)):
        depth = b.draws.between(1, 3)
        inner = 2**depth - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            rows["treeids"].append(tree), rows["nodeids"].append(node)
            rows["featureids"].append(0 if leaf else b.draws.between(0, columns - 1))
            rows["modes"].append("LEAF" if leaf else b.draws.choose(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"]))
            rows["values"].append(0.0 if leaf else b.draws.choose([0.0, 0.3, -0.7, 1.1]))
            rows["truenodeids"].append(0 if leaf else 2 * node + 1), rows["falsenodeids"].append(0 if leaf else 2 * node + 2)
            if leaf:
                leaves.append((tree, node, b.draws.between(0, targets - 1), b.draws.real(-1, 1)))
    attributes = {f"nodes_{key}": values for key, values in rows.items()}
    for key, values in zip(("treeids", "nodeids", "ids", "weights"), zip(*leaves)):
        attributes[f"target_{key}"] = list(values)
    attributes.update(given(b.draws, aggregate_function=b.draws.choose(["SUM", "AVERAGE", "MIN", "MAX"])))
    return b.node("TreeEnsembleRegressor", [x], {**attributes, "n_targets": targets}, domain=ML)


@rule("SVMRegressor", domain=ML)
def svm(b, schema):
    x, columns = _rows(b)
    count = b.draws.between(1, 3)
    return b.node("SVMRegressor", [x], {"kernel_type": b.draws.choose(["LINEAR", "RBF", "POLY", "SIGMOID"]), "kernel_params": [0.5, 0.1, 2.0], "n_supports": count,
                                       "support_vectors": [b.draws.real(-1, 1) for _ in range(count * columns)], "coefficients": [b.draws.real(-1, 1) for _ in range(count)], "rho": [0.3]}, domain=ML)
