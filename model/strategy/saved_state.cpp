#include "model/strategy/saved_state.hpp"

#include "model/core/ensure.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

namespace {

const OptimizerPlan* optimizer_of(const Replica& replica, const Replica::Parameter& parameter) {
  for (const OptimizerPlan& optimizer : replica.plan().optimizers) {
    if (parameter.trainable && optimizer.holds(parameter.place.layer)) {
      return &optimizer;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<SavedTensor> saved_parameters(Rank& rank, Replica& replica) {
  std::vector<SavedTensor> saved;
  for (const Replica::Parameter& parameter : replica.parameters()) {
    SavedTensor& tensor = saved.emplace_back();
    tensor.steps = parameter.tensor.steps;
    tensor.numbers = parameter.tensor.numbers;
    if (replica.writes_values()) {
      tensor.value = rank.read(parameter.tensor.value);
      for (const Slice& state : parameter.tensor.state) {
        tensor.state.push_back(rank.read(state));
      }
    }
  }
  return saved;
}

std::vector<Values> saved_buffers(Rank& rank, Replica& replica) {
  std::vector<Values> saved;
  for (const Replica::Buffer& buffer : replica.buffers()) {
    saved.push_back(replica.writes_values() ? rank.read(buffer.value) : Values());
  }
  return saved;
}

void restore(Rank& rank, const std::vector<SavedTensor>& parameters,
             const std::vector<Values>& buffers, Replica& replica) {
  ensure(parameters.size() == replica.parameters().size() &&
             buffers.size() == replica.buffers().size(),
         "a checkpoint of the same model");
  for (size_t index = 0; index < parameters.size(); ++index) {
    const SavedTensor& saved = parameters[index];
    Replica::Parameter& parameter = replica.parameters()[index];
    if (!saved.value.empty()) {
      rank.write(parameter.tensor.value, saved.value);
    }
    const OptimizerPlan* const optimizer = optimizer_of(replica, parameter);
    parameter.tensor.steps = saved.steps;
    parameter.tensor.numbers = saved.numbers;
    if (optimizer == nullptr || saved.steps == 0) {
      continue;
    }
    const Shape& shape = replica.network().parameter(parameter.place).shape;
    for (const OptimizerState& state : rule_of(optimizer->kind).state(*optimizer, shape)) {
      const size_t held = parameter.tensor.state.size();
      parameter.tensor.state.push_back(rank.allocate(Purpose::optimizer_state,
                                                     parameter.tensor.value.dtype, state.elements,
                                                     replica.device()));
      if (held < saved.state.size()) {
        rank.write(parameter.tensor.state.back(), saved.state[held]);
      }
    }
  }
  for (size_t index = 0; index < buffers.size(); ++index) {
    if (!buffers[index].empty()) {
      rank.write(replica.buffers()[index].value, buffers[index]);
    }
  }
}

}  // namespace lockstep
