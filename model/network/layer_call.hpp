#pragma once

#include <vector>

#include "model/network/execute.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

/// The operands of one layer kernel, loaded once; results are stored at the end. Indices are those
/// of model/core/kernel.hpp.
class LayerCall {
 public:
  LayerCall(const Op& op, Operands& operands);

  /// Whether every operand carries values.
  bool valued() const;
  const Values& read(size_t index) const { return reads_.at(index); }
  /// A parameter that the layer may lack: null.
  const Values* read_if(size_t index, bool has) const { return has ? &reads_.at(index) : nullptr; }
  Values& write(size_t index) { return writes_.at(index); }
  size_t reads() const { return reads_.size(); }
  size_t writes() const { return writes_.size(); }
  bool wants(size_t index) const { return index < writes_.size() && !writes_[index].empty(); }
  /// The write, or null where it is not wanted.
  Values* write_if(size_t index) { return wants(index) ? &writes_[index] : nullptr; }
  /// The write becomes `values`, rounded to its type.
  void write_cast(size_t index, const Values& values);
  size_t scalars() const { return lists_.scalars.size(); }
  double scalar(size_t index) const { return lists_.scalars[index]; }
  int64_t samples() const { return static_cast<int64_t>(scalar(0)); }

  /// Mixed precision: reads, and what is written, become `dtype`; `store` brings the results to the
  /// types of their buffers, the second and later ones (gradients of parameters) by addition.
  void narrow(DType dtype);
  void store();

 private:
  const OpLists& lists_;
  Operands& operands_;
  std::vector<Values> reads_;
  std::vector<Values> writes_;
  std::vector<Values> held_;  ///< what the buffers held, where the call is narrowed
};

// The layers of each source file: false where the layer is of none of its kinds.
bool forward_of_sequence_layer(const Layer& layer, LayerCall& call);
bool backward_of_sequence_layer(const Layer& layer, LayerCall& call);
bool forward_of_image_layer(const Layer& layer, LayerCall& call);
bool backward_of_image_layer(const Layer& layer, LayerCall& call);
bool forward_of_elementwise_layer(const Layer& layer, LayerCall& call);
bool backward_of_elementwise_layer(const Layer& layer, LayerCall& call);
bool forward_of_decoder_layer(const Layer& layer, LayerCall& call);
bool backward_of_decoder_layer(const Layer& layer, LayerCall& call);
bool forward_of_scaling_layer(const Layer& layer, LayerCall& call);
bool backward_of_scaling_layer(const Layer& layer, LayerCall& call);
bool forward_of_aside_layer(const Layer& layer, LayerCall& call);
bool backward_of_aside_layer(const Layer& layer, LayerCall& call);
bool forward_of_mixture_layer(const Layer& layer, LayerCall& call);
bool backward_of_mixture_layer(const Layer& layer, LayerCall& call);
bool forward_of_divided_positions(const Layer& layer, LayerCall& call);
bool backward_of_divided_positions(const Layer& layer, LayerCall& call);
bool forward_of_batch_norm_part(const Layer& layer, LayerCall& call);
bool backward_of_batch_norm_part(const Layer& layer, LayerCall& call);
void execute_loss(bool is_forward, const Layer& layer, LayerCall& call);

}  // namespace lockstep
