#include "rehearsal/explore/explorer_port.hpp"

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep::cli {

namespace {

constexpr uint32_t steps_between_looks = 256;

void add_unknowns(const ExpressionNode& node, std::set<SiteId>& sites) {
  if (node.kind == ExpressionNode::Kind::unknown) {
    sites.insert(unknown_site_of(node.place));
  }
  for (const ExpressionNodePointer& part : node.parts) {
    add_unknowns(*part, sites);
  }
}

// In place of the program of a rank that is not to begin.
Program stopped(Rank&, const Deadline& deadline) {
  throw TimeLimitReached(deadline);
  co_return;
}

Program start_late(Rank& rank, const ProgramOfRank& program, Time lateness) {
  rank.host(lateness);
  co_await program(rank);
}

}  // namespace

std::set<SiteId> unknown_sites(const Scenario& scenario) {
  std::set<SiteId> sites;
  if (!scenario.program) {
    return sites;
  }
  for_each_statement(*scenario.program, [&](const Statement& statement) {
    for_each_expression(statement, [&](const Expression& expression) {
      if (expression.uses_unknown()) {
        add_unknowns(expression.root(), sites);
      }
    });
  });
  return sites;
}

bool Exploration::must_stop() {
  if (deadline != nullptr) {
    const uint32_t before = steps.fetch_add(1, std::memory_order_relaxed);
    if (!deadline->allows(int64_t{before} + 1) ||
        (before % steps_between_looks == 0 && deadline->passed())) {
      deadline_passed = true;
    }
  }
  return deadline_passed;
}

void ExplorerPort::watch() {
  if (exploration_.must_stop()) {
    throw TimeLimitReached(*exploration_.deadline);
  }
}

Ticket ExplorerPort::submit(std::span<const Op> ops) {
  watch();
  return inner_.submit(ops);
}

uint32_t ExplorerPort::choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) {
  watch();
  if (kind != ChoiceKind::unknown || !exploration_.scripted) {
    return inner_.choose(site, kind, alternatives, local);
  }
  const size_t turn = exploration_.taken.size();
  const uint32_t wanted = turn < exploration_.script.size()
                              ? exploration_.script[turn] % alternatives
                              : exploration_.other_choices;
  const uint32_t taken = inner_.choose(site, kind, alternatives, wanted);
  exploration_.taken.push_back(
      {static_cast<int32_t>(place().rank.value), site, alternatives, taken});
  return taken;
}

ProgramOfRank explored(const ProgramOfRank& program, Exploration& exploration,
                       std::vector<std::unique_ptr<RankView>>& views, const Schedule& schedule) {
  return [&program, &exploration, &views, &schedule](Rank& rank) {
    if (exploration.must_stop()) {
      return stopped(rank, *exploration.deadline);
    }
    auto& view = views[rank.place().rank.value];
    view = std::make_unique<RankView>(rank.port(), exploration);
    return rank.id() == schedule.late_rank ? start_late(view->rank, program, schedule.lateness)
                                           : program(view->rank);
  };
}

}  // namespace lockstep::cli
