# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml."""

import numpy as np

from builder import Rejected, numbers, to_tensor
from draws import F32, I32, I64, TEXT
from rules import dtypes, given, rule

ML = "ai.onnx.ml"


def _rows(b, schema=None, free=False, only_numbers=False):
    """Rows of features, of the types that the schema names. Attributes tell how many features there are, so that this size is
    not left open, unless it is `free`."""
    columns = b.draws.extent(1, 5)
    fits = lambda v: v.shape[1] == columns and v.shape[0] > 0 and (numbers(v) or not only_numbers)
    x = b.pick(dtypes(schema, 0) if schema and b.draws.chance(0.3) else [F32], (2, 2), fits, shape=(b.draws.extent(1, 4), columns))
    return (x if free else _with_features(b, x)), columns


def _with_features(b, x):
    """Rows whose number of features is told by attributes. What follows from other sizes is not judged under others (forms.py)."""
    return b.close(x, 1) if x.source in ("input", "constant") else x


def _transform(b, scores, as_text=True):
    """What becomes of the scores. Of a single one others leave it as it is, against the text."""
    names = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
    place = b.draws.between(0, 2) if scores > 1 else 0
    return given(b.draws, post_transform=names[place] if as_text else (0, 1, 2)[place])


def _classes(b, count, ints="classlabels_ints"):
    return {"classlabels_strings": [f"c{i}" for i in range(count)]} if b.draws.chance(0.4) else {ints: [2 * i - 1 for i in range(count)]}


def _reals(b, count):
    return [b.draws.real(-1, 1) for _ in range(count)]


@rule("Binarizer", domain=ML)
def binarizer(b, schema):
    return b.node("Binarizer", [_rows(b, schema, free=True)[0]], given(b.draws, threshold=0.5), domain=ML)


@rule("Scaler", domain=ML)
def scaler(b, schema):
    x, columns = _rows(b, schema)
    count = b.draws.choose([1, columns])
    return b.node("Scaler", [x], {"offset": [b.draws.real(-1, 1) for _ in range(count)], "scale": [b.draws.real(0.5, 2) for _ in range(count)]}, domain=ML)


@rule("Normalizer", domain=ML)
def normalizer(b, schema):
    # Which of NaN and a number is the larger one is open.
    return b.node("Normalizer", [_rows(b, schema, free=True, only_numbers=True)[0]], {"norm": b.draws.choose(["MAX", "L1", "L2"])}, domain=ML)


@rule("Imputer", domain=ML)
def imputer(b, schema):
    x, columns = _rows(b)
    if b.draws.chance(0.3):
        x = _with_features(b, b.pick([I64], (2, 2), lambda v: v.shape[1] == columns and v.shape[0] > 0, shape=(b.draws.between(1, 4), columns)))
        return b.node("Imputer", [x], {"imputed_value_int64s": list(range(b.draws.choose([1, columns]))), "replaced_value_int64": 1}, domain=ML)
    return b.node("Imputer", [x], {"imputed_value_floats": [float(i) for i in range(b.draws.choose([1, columns]))], "replaced_value_float": b.draws.choose([0.0, float("nan")])}, domain=ML)


@rule("ArrayFeatureExtractor", domain=ML)
def extractor(b, schema):
    x, columns = _rows(b)
    return b.node("ArrayFeatureExtractor", [x, b.indices((b.draws.between(1, 3),), 0, columns)], domain=ML)


@rule("FeatureVectorizer", domain=ML)
def vectorizer(b, schema):
    x, columns = _rows(b)
    return b.node("FeatureVectorizer", [x, _with_features(b, b.like(F32, (x.shape[0], 2)))], {"inputdimensions": [columns, 2]}, domain=ML)


@rule("LinearRegressor", domain=ML)
def regressor(b, schema):
    x, columns = _rows(b, schema)
    targets = b.draws.between(1, 3)
    attributes = {"coefficients": [b.draws.real(-1, 1) for _ in range(columns * targets)], "targets": targets}
    return b.node("LinearRegressor", [x], {**attributes, **given(b.draws, intercepts=[0.5] * targets), **_transform(b, targets)}, domain=ML)


_LABELS = {"int64s": [0, 1, 3], "floats": [0.5, float("nan"), -1.0], "strings": ["a", "B", "zz"]}
_TENSORS = (I64, F32, np.dtype(np.float64), np.dtype(np.int16))
_DEFAULTS = {"int64s": {"default_int64": 9}, "floats": {"default_float": 0.25}, "strings": {"default_string": "none"}}


@rule("LabelEncoder", domain=ML)
def labels(b, schema):
    if "classes_strings" in schema.attributes:
        raise Rejected("the form of version 1: not drawn")
    if "keys_tensor" in schema.attributes and b.draws.chance(0.3):
        keys, values = b.draws.choose(_TENSORS), b.draws.choose(_TENSORS)
        x = b.pick([keys], (1, 3))
        found = {"keys_tensor": to_tensor(np.array([0, 1, 3], keys)), "values_tensor": to_tensor(np.array([5, 7, 2], values))}
        return b.node("LabelEncoder", [x], {**found, "default_tensor": to_tensor(np.array([4], values))}, domain=ML)
    keys, values = b.draws.choose(list(_LABELS)), b.draws.choose(list(_LABELS))
    x = b.pick([{"int64s": I64, "floats": F32, "strings": TEXT}[keys]], (1, 3))
    wanted = dict(_LABELS)
    if schema.since_version < 4 and keys == "floats":  # that NaN is found, as the text has it, nobody else does before
        wanted["floats"] = [0.5, 2.0, -1.0]
    return b.node("LabelEncoder", [x], {f"keys_{keys}": wanted[keys], f"values_{values}": wanted[values], **given(b.draws, **_DEFAULTS[values])}, domain=ML)


@rule("CategoryMapper", domain=ML)
def categories(b, schema):
    x = b.pick([I64, TEXT], (1, 3))
    default = {"default_int64": -1} if x.dtype == TEXT else {"default_string": "none"}
    return b.node("CategoryMapper", [x], {"cats_int64s": [0, 1, 3], "cats_strings": ["a", "B", "zz"], **given(b.draws, **default)}, domain=ML)


@rule("OneHotEncoder", domain=ML)
def one_hot(b, schema):
    strings = b.draws.chance(0.3)
    x = b.pick([TEXT] if strings else [I64, F32, I32], (1, 3), numbers)
    if strings:
        return b.node("OneHotEncoder", [x], {"cats_strings": ["a", "B", "the"]}, domain=ML)
    return b.node("OneHotEncoder", [x], {"cats_int64s": [0, 1, 2, 4], **given(b.draws, zeros=1)}, domain=ML)


@rule("LinearClassifier", domain=ML)
def linear_classifier(b, schema):
    x, columns = _rows(b, schema, only_numbers=True)
    count = b.draws.between(2, 4)
    attributes = {"coefficients": _reals(b, columns * count), "intercepts": _reals(b, count), "multi_class": b.draws.between(0, 1), **_transform(b, count)}
    if count == 2 and b.draws.chance(0.5):  # one row for both: what else becomes of its scores is open
        attributes.update(coefficients=_reals(b, columns), intercepts=_reals(b, 1), post_transform="LOGISTIC")
    return b.node("LinearClassifier", [x], {**attributes, **_classes(b, count)}, 2, domain=ML)


@rule("SVMClassifier", domain=ML)
def svm_classifier(b, schema):
    x, columns = _rows(b, schema, only_numbers=True)
    count = b.draws.between(2, 3)
    if count == 3 and b.draws.chance(0.2):  # without support vectors: a row of coefficients for each class
        return b.node("SVMClassifier", [x], {"kernel_type": "LINEAR", "kernel_params": [0.5, 0.1, 2.0], "coefficients": _reals(b, columns * count), "rho": _reals(b, 1), **_classes(b, count)}, 2, domain=ML)
    per_class = [b.draws.between(1, 2) for _ in range(count)]
    pairs, supports = count * (count - 1) // 2, sum(per_class)
    attributes = {"kernel_type": b.draws.choose(["LINEAR", "RBF", "POLY", "SIGMOID"]), "kernel_params": [0.5, 0.1, 2.0], "vectors_per_class": per_class,
                  "support_vectors": _reals(b, supports * columns), "coefficients": _reals(b, supports * (count - 1)), "rho": _reals(b, pairs)}
    if b.draws.chance(0.3):
        attributes.update(prob_a=_reals(b, pairs), prob_b=_reals(b, pairs))
    return b.node("SVMClassifier", [x], {**attributes, **_classes(b, count)}, 2, domain=ML)


def _trees(b, columns, targets, all_targets=False):
    """Full trees: the attributes of their nodes, and (tree, node, target, weight) of each leaf, for one target or for all of them."""
    rows = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
    leaves = []
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"]
    modes = [b.draws.choose(modes)] if b.draws.chance(0.5) else modes
    for tree in range(b.draws.between(1, 3)):
        depth = b.draws.between(1, 3)
        inner = 2**depth - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            rows["treeids"].append(tree), rows["nodeids"].append(node)
            rows["featureids"].append(0 if leaf else b.draws.between(0, columns - 1))
            rows["modes"].append("LEAF" if leaf else b.draws.choose(modes))
            rows["values"].append(0.0 if leaf else b.draws.choose([0.0, 0.25, -0.75, 1.0]))
            rows["truenodeids"].append(0 if leaf else 2 * node + 1), rows["falsenodeids"].append(0 if leaf else 2 * node + 2)
            if leaf:
                # Every leaf has a weight for each class: what a class without one scores differs.
                each = range(targets) if all_targets else [b.draws.between(0, targets - 1)]
                leaves += [(tree, node, target, b.draws.real(-1, 1)) for target in each]
    attributes = {f"nodes_{key}": values for key, values in rows.items()}
    attributes.update(given(b.draws, nodes_missing_value_tracks_true=[b.draws.between(0, 1) for _ in rows["modes"]]))
    return attributes, leaves


def _in_float64(attributes, schema, x):
    """The same trees with their numbers as tensors of float64, as rows of that type have them since version 3."""
    if x.dtype != np.float64 or "nodes_values_as_tensor" not in schema.attributes:
        return attributes
    wide = {name: attributes[name] for name in ("nodes_values", "target_weights", "class_weights", "base_values") if name in attributes}
    rest = {name: value for name, value in attributes.items() if name not in wide}
    return {**rest, **{f"{name}_as_tensor": to_tensor(np.array(value)) for name, value in wide.items()}}


def _leaf_rows(prefix, leaves):
    return {f"{prefix}_{key}": list(values) for key, values in zip(("treeids", "nodeids", "ids", "weights"), zip(*leaves))}


@rule("TreeEnsembleRegressor", domain=ML)
def trees(b, schema):
    x, columns = _rows(b, schema)
    targets = b.draws.between(1, 2)
    attributes, leaves = _trees(b, columns, targets)
    attributes.update(_leaf_rows("target", leaves))
    aggregate = b.draws.choose(["SUM", "AVERAGE", "MIN", "MAX"])
    # ONNX Runtime leaves the base value out of a mean, and of one of several targets, that no leaf adds to.
    with_base = targets == 1 and aggregate != "AVERAGE"
    attributes.update(given(b.draws, aggregate_function=aggregate, base_values=_reals(b, targets) if with_base else None), **_transform(b, targets))
    return b.node("TreeEnsembleRegressor", [x], {**_in_float64(attributes, schema, x), "n_targets": targets}, domain=ML)


@rule("TreeEnsembleClassifier", domain=ML)
def tree_classifier(b, schema):
    x, columns = _rows(b, schema)
    # How ONNX Runtime labels two classes is its own (docs/compiler.md), and the reference has no tensors of float64.
    count = 3 if x.dtype == np.float64 else b.draws.between(2, 3)
    attributes, leaves = _trees(b, columns, count, all_targets=True)
    attributes.update(_leaf_rows("class", leaves))
    # To the scores of two classes ONNX Runtime adds one of the base values, and under SOFTMAX it labels them by the second one.
    transform = _transform(b, count) if count > 2 else given(b.draws, post_transform="LOGISTIC")
    attributes.update(given(b.draws, base_values=_reals(b, count) if count > 2 else None), **transform)
    return b.node("TreeEnsembleClassifier", [x], {**_in_float64(attributes, schema, x), **_classes(b, count, "classlabels_int64s")}, 2, domain=ML)


@rule("TreeEnsemble", domain=ML)
def tree_ensemble(b, schema):
    x = _with_features(b, b.pick([F32, np.dtype(np.float64)], (2, 2), lambda v: min(v.shape) > 0, shape=(b.draws.between(1, 4), b.draws.between(1, 5))))
    targets, nodes, leaves, roots = b.draws.between(1, 2), [], 0, []
    for _ in range(b.draws.between(1, 3)):
        roots.append(len(nodes))
        inner = 2 ** b.draws.between(1, 3) - 1
        for node in range(inner):
            first = 2 * node + 1
            is_leaf = first >= inner
            children = [leaves, leaves + 1] if is_leaf else [roots[-1] + first, roots[-1] + first + 1]
            leaves += 2 if is_leaf else 0
            nodes.append((b.draws.between(0, x.shape[1] - 1), b.draws.between(0, 5), b.draws.choose([0.0, 0.25, -0.75]), is_leaf, *children))
    features, modes, splits, at_leaf, true_ids, false_ids = zip(*nodes)
    tensor = lambda values, dtype: to_tensor(np.array(values, dtype))
    attributes = {"tree_roots": roots, "nodes_featureids": features, "nodes_modes": tensor(modes, np.uint8), "nodes_splits": tensor(splits, x.dtype),
                  "nodes_truenodeids": true_ids, "nodes_falsenodeids": false_ids, "nodes_trueleafs": list(map(int, at_leaf)), "nodes_falseleafs": list(map(int, at_leaf)),
                  "leaf_targetids": [b.draws.between(0, targets - 1) for _ in range(leaves)], "leaf_weights": tensor(_reals(b, leaves), x.dtype), "n_targets": targets}
    return b.node("TreeEnsemble", [x], {**attributes, **given(b.draws, aggregate_function=b.draws.between(0, 3)), **_transform(b, targets, as_text=False)}, domain=ML)


@rule("SVMRegressor", domain=ML)
def svm(b, schema):
    x, columns = _rows(b, schema, only_numbers=True)
    if b.draws.chance(0.2):
        return b.node("SVMRegressor", [x], {"kernel_type": "LINEAR", "kernel_params": [0.5, 0.1, 2.0], "coefficients": _reals(b, columns), "rho": [0.3], **given(b.draws, n_supports=0)}, domain=ML)
    count = b.draws.between(1, 3)
    return b.node("SVMRegressor", [x], {"kernel_type": b.draws.choose(["LINEAR", "RBF", "POLY", "SIGMOID"]), "kernel_params": [0.5, 0.1, 2.0], "n_supports": count,
                                       "support_vectors": [b.draws.real(-1, 1) for _ in range(count * columns)], "coefficients": [b.draws.real(-1, 1) for _ in range(count)], "rho": [0.3], **given(b.draws, one_class=1)}, domain=ML)
