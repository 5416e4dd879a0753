# SPDX-License-Identifier: Apache-2.0
"""Runs one model in some forms, and says what came of each."""

import forms
import ours
import promised
from oracles import Open


def forms_of(drawn, asked, device):
    """The names of the forms that a model gets."""
    every = [name for name in forms.FORMS if device or name != "opencl"]
    if asked == "all":
        return [name for name in every if name != "without-one"] + [f"without:{name}" for name in ours.PASSES]
    if asked != "random":
        return asked.split(",")
    weights = {name: weight for name, weight in forms.WEIGHTS.items() if name in every}
    return ["passes", "no-passes", *dict.fromkeys(drawn.draws.weighted(weights) for _ in range(2))]


def run_form(trial, name):
    """(status, detail): ok, skipped, open, refused, failed or wrong."""
    try:
        function = forms.without(name.removeprefix("without:")) if name.startswith("without:") else forms.FORMS[name]
        wrong = function(trial)
        return ("wrong", wrong) if wrong else ("ok", "")
    except forms.Skipped as reason:
        return "skipped", str(reason)
    except Open as reason:
        return "open", str(reason)
    except ours.Refused as reason:
        by_design = [promised.may_refuse(each.domain, each.op_type, each.opset, each.reason) for each in reason.nodes]
        return ("by design" if by_design and all(by_design) else "refused"), str(reason)
    except ours.Failed as reason:
        return "failed", str(reason)


def run(drawn, asked="random", device=False, stage=lambda text: None):
    """Yields (form, status, detail)."""
    trial = forms.Trial(drawn)
    stage("oracles")
    if not trial.oracles.valid:
        yield "model", "invalid", "; ".join(trial.oracles.failures.values())[:200]
        return
    for name in forms_of(trial, asked, device):
        stage(name)
        yield name, *run_form(trial, name)
