#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/tensor_parallel/cut_layer.hpp"
#include "model/network/tensor_parallel/cut_network.hpp"
#include "model/network/tensor_parallel/layer_places.hpp"

namespace lockstep {

/// Layouts in one skip connection.
struct OpenResidual {
  TensorLayout remembered = TensorLayout::replicated;
  std::optional<TensorLayout> put_aside{};
  bool is_distributed = false;
};

/// Whose way of cutting it is, where torch and Megatron-LM differ.
enum class CutBy : uint8_t { torch, megatron };

/// Walks through a network and appends what each rank has of it, layer by layer. The walk and the
/// plan are in cut_network.cpp, layers in network_cutter.cpp, what Megatron-LM does otherwise in
/// megatron_cut.cpp.
class NetworkCutter {
 public:
  NetworkCutter(const Network& whole, const ParallelPlan& plan, int32_t ranks,
                CutBy by = CutBy::torch)
      : whole_(whole), plan_(plan), ranks_(ranks), by_(by), is_used_(plan.size(), false) {}

  CutNetwork cut();

 private:
  void refuse(std::string where, std::string why_not, std::string remedy) {
    if (result_.why_not.empty()) {
      result_.where = std::move(where);
      result_.why_not = std::move(why_not);
      result_.remedy = std::move(remedy);
    }
  }
  bool is_refused() const { return !result_.why_not.empty(); }
  std::string_view size_argument() const {
    return by_ == CutBy::megatron ? "tensor_model_parallel_size" : "tensor_parallel_size";
  }
  std::string remedy_of_size(int64_t size) const;
  std::string remedy_of_positions() const;

  const ParallelStyle* style_of(const std::string& module);
  void enter_modules(size_t index);
  void add_layer(size_t index);
  void add_cut(const Layer& layer, const ParallelStyle& style);
  bool bring_input(const Layer& layer, const ParallelStyle& style);
  void add_inside(const Layer& layer);
  bool can_read_once(const Layer& layer, const std::vector<const ParallelStyle*>& styles);
  void add_sequence(const Layer& layer, const ParallelStyle& style);
  bool can_divide_experts(const Layer& layer, const ParallelStyle& style);
  void add_experts(const Layer& layer);
  void add_own_tokens(const Layer& layer);
  void add_plain(const Layer& layer);
  void pass_residual(const Layer& layer);
  void append(Layer layer);
  void take(CutLayer cut, const std::string& module);
  void add_fused_attention(const Layer& layer);
  void add_bias_behind_sum(const std::string& module);
  void scatter_positions(const Layer& layer);
  bool sees_sequence() const;
  void end_in_parts();
  void exchange(const ExchangeArguments& how, const std::string& module);
  void bring(TensorLayout from, TensorLayout to, bool gives_terms, int32_t times,
             const std::string& module);
  bool arrives(const std::string& module, TensorLayout wanted);
  void refuse_mixture(const std::string& module);
  void check_plan();
  void check_ties();

  const Network& whole_;
  const ParallelPlan& plan_;
  int32_t ranks_;
  CutBy by_;
  std::optional<Layer> pending_bias_{};  ///< is added behind the sum that comes next
  bool last_keeps_parts_ = false;        ///< the last Linear hands its parts of the classes on
  std::vector<bool> is_used_;            ///< by name of the plan
  CutNetwork result_;
  TensorLayout layout_ = TensorLayout::replicated;
  Shape shape_;  ///< of a sample, as every rank has it
  /// What a style hands on is a DTensor until a layer gives a plain tensor again. It knows whether
  /// its gradient is a term, and mixes with no plain tensor.
  bool is_distributed_ = false;
  std::vector<OpenResidual> residuals_;
  LayerPlaces places_;
  int64_t exchanges_ = 0;
};

}  // namespace lockstep
