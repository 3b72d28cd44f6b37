#include "model/strategy/local_model/replica_layout.hpp"

#include "model/strategy/plan.hpp"

namespace lockstep {

namespace {

ReplicaLayout new_layout(const TrainingPlan& plan) {
  const Network& network = *plan.network;
  ReplicaLayout layout;
  layout.network = plan.network;
  layout.types = plan.types();
  layout.numerics = plan.numerics;
  if (!plan.numerics) {
    layout.memory = memory_of(network, plan.types());
  }
  const size_t layers = network.layers.size();
  layout.parameters_of.resize(layers);
  layout.trainable_of.resize(layers);
  layout.buffers_of.resize(layers);
  size_t parameters = 0;
  for (const ParameterPlace place : network.parameters()) {
    layout.parameters_of[place.layer].push_back(parameters);
    if (network.parameter(place).trainable) {
      layout.trainable_of[place.layer].push_back(parameters);
    }
    ++parameters;
  }
  size_t buffers = 0;
  for (size_t layer = 0; layer < layers; ++layer) {
    if (const auto tied = network.layers[layer].tied_layer) {
      layout.parameters_of[layer].insert(layout.parameters_of[layer].begin(),
                                         layout.parameters_of[*tied].front());
    }
    for (size_t buffer = 0; buffer < network.layers[layer].buffers.size(); ++buffer) {
      layout.buffers_of[layer].push_back(buffers++);
    }
  }
  return layout;
}

}  // namespace

std::shared_ptr<const ReplicaLayout> layout_of(const TrainingPlan& plan) {
  const ReplicaLayout* const known = plan.layout.get();
  const bool fits = known != nullptr && known->network == plan.network &&
                    known->types == plan.types() && known->numerics == plan.numerics;
  return fits ? plan.layout : std::make_shared<const ReplicaLayout>(new_layout(plan));
}

}  // namespace lockstep
