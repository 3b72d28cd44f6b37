#include "properties/diagnosis/remedy_of_divergence.hpp"

#include "properties/diagnosis/batch_position.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "properties/diagnosis/stop_decision.hpp"

namespace lockstep {

std::vector<std::string> remedy_of_divergence(const RunResult& run, const Divergence& d,
                                              bool by_signal) {
  const Sites& sites = run.journal->sites;
  const Site* const guard = d.decision ? sites.find(d.decision->site) : nullptr;
  const Site* const statement = sites.find(d.statement);
  RemedyContext context{std::string(name_of(d.odd.kind)),
                        guard == nullptr ? std::string() : guard->condition, by_signal, d.stops};
  if (d.stops && guard != nullptr) {
    const std::string own = stop_condition(sites, d.decision->site);
    context.condition = own.empty() ? context.condition : own;
  }
  context.parted = d.parted;
  context.batches = batches_of(sites, d.decision);
  context.statement = statement == nullptr ? "" : statement->description;
  context.steps_if_true = context.statement == "optimizer_step" && d.decision &&
                          d.decision->kind == ChoiceKind::branch && d.decision->value != 0;
  return remedy_for(d.code, context);
}

}  // namespace lockstep
