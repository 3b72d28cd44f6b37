#include "model/trainer/loop/forward_graphs.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

// dp throws its replicas away after each backward.
bool ForwardGraphs::keeps_any() const { return !strategy_.steps_on_copies(); }

ForwardResults ForwardGraphs::results() const {
  ForwardResults found{
      last_is_gone_ ? nullptr : loss_, last_is_gone_ ? nullptr : output_, {}, !keeps_any()};
  for (const KeptForward& kept : kept_) {
    found.kept.insert(kept.number);
  }
  return found;
}

// The names that the next forward binds again do not count.
void ForwardGraphs::keep_last(const std::string& next_output, Frame& frame, bool has_last) {
  drop_unreachable();
  if (!has_last || last_is_gone_ || !keeps_any()) {
    return;
  }
  const auto is_held = [&](const GradientPointer& result, std::string_view name, bool rebound) {
    const Variable* const variable = names_.find(name, frame);
    const bool is_there = variable != nullptr && variable->gradient == result;
    return result && result.use_count() > 1 + (is_there && rebound ? 1 : 0);
  };
  const bool rebinds_output = next_output == output_name_;
  if (is_held(loss_, "loss", true) || is_held(output_, output_name_, rebinds_output)) {
    kept_.push_back({number_, loss_, output_});
    strategy_.replica().forwards().keep();
  }
}

void ForwardGraphs::begin(int64_t number) {
  output_ = nullptr;
  loss_ = nullptr;
  number_ = number;
  last_is_gone_ = false;
}

void ForwardGraphs::set_output(std::string name, GradientPointer output) {
  output_name_ = std::move(name);
  output_ = std::move(output);
}

void ForwardGraphs::drop_unreachable() {
  std::erase_if(kept_, [&](const KeptForward& kept) {
    const bool is_unreachable = kept.loss.expired() && kept.output.expired();
    if (is_unreachable) {
      strategy_.replica().forwards().drop(rank_, kept.number);
    }
    return is_unreachable;
  });
}

void ForwardGraphs::drop_all() {
  for (const KeptForward& kept : kept_) {
    strategy_.replica().forwards().drop(rank_, kept.number);
  }
  kept_.clear();
}

// Autograd goes back through what ran last first.
std::vector<BackwardPass> ForwardGraphs::take_passes(const BackwardStart& start) {
  const auto pass = [](int64_t number, const ForwardStart& of) {
    return BackwardPass{number, of.of_loss, of.of_output, !of.of_output.empty()};
  };
  std::vector<BackwardPass> passes;
  if (start.has_last) {
    passes.push_back(pass(number_, start));
  }
  for (const auto& [number, of] : start.earlier | std::views::reverse) {
    passes.push_back(pass(number, of));
  }
  std::erase_if(kept_,
                [&](const KeptForward& kept) { return start.earlier.contains(kept.number); });
  return passes;
}

}  // namespace lockstep
