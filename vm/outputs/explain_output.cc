// SPDX-License-Identifier: Apache-2.0
//
// A Program says where its outputs are made.
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/output.h"
#include "rewire/vm/outputs/bound_outputs.h"

namespace rewire {

Result<OutputPlan> Program::TryOutputPlan(OutputHandle output) const {
  const Module& module = rep_->module();
  if (Status ok = CheckOutput(module, output); !ok) return Forward(ok);
  const Function& function = module.functions[output.function];
  const LeafPlan& leaf = rep_->plans[output.function].leaves[output.leaf];
  OutputPlan plan;
  plan.rewired = leaf.rewired;
  if (!leaf.rewired) plan.reason = CopyReasonText(leaf.reason);
  for (const OutputSite& site : leaf.sites) {
    OutputMaker maker;
    maker.pc = site.pc;
    maker.instruction = ShortInstructionText(module, function, site.pc);
    maker.in_place = site.reason == CopyReason::kNone;
    if (!maker.in_place) maker.reason = CopyReasonText(site.reason);
    plan.makers.push_back(std::move(maker));
  }
  return plan;
}

std::string Program::ExplainOutput(OutputHandle output) const {
  const Result<OutputPlan> plan = TryOutputPlan(output);
  if (!plan) return plan.error().message();
  std::string text = plan->rewired ? "rewired" : Format("copied: {}", plan->reason);
  for (const OutputMaker& maker : plan->makers) {
    Append(&text, {"\n  {}@{} ({}): {}", rep_->module().functions[output.function].name, maker.pc,
                   maker.instruction, maker.in_place ? "in place" : maker.reason});
  }
  return text;
}

}  // namespace rewire
