#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model/network/build.hpp"
#include "model/network/execute.hpp"

namespace lockstep::libtorch_test {

/// Buffers of one rank, by number.
class Memory final : public Operands {
 public:
  Slice add(Values values);
  /// A buffer that carries no values.
  Slice add_without_values(DType dtype, int64_t elements);
  Values load(const Slice& from) override;
  void store(const Slice& to, const Values& values) override;

 private:
  std::vector<Values> buffers_;
};

/// What executes kernels: the reference, or LibTorch.
using Execute = std::function<void(const Op&, Operands&, const Network*)>;
Execute reference();
/// One executor, whose kept graphs live as long as the function.
Execute libtorch(uint64_t dropout_seed = 0);

void run_kernel(const Execute& execute, Memory& memory, Kernel kernel,
                const std::vector<Slice>& reads, const std::vector<Slice>& writes,
                const std::vector<double>& scalars, const Network* network = nullptr,
                int32_t layer = 0, DType computes_in = DType::uint8);

/// A network of one layer after torch.nn, or of a few.
Network network_of(Shape input, std::vector<LayerDescription> layers,
                   LayerDescription loss = {.kind = "MSELoss"});
LayerDescription layer(std::string kind, std::vector<NamedArgument> arguments = {});

/// A network of one layer for each kind that has a kernel; inputs of a few elements.
std::vector<Network> one_layer_of_each_kind();

/// Whole numbers in -2 .. 2, and real ones in [-1, 1), from a key.
Values integers(DType dtype, int64_t elements, uint64_t key);
Values reals(DType dtype, int64_t elements, uint64_t key);
using Draw = Values (*)(DType, int64_t, uint64_t);

/// All that a forward and a backward of one layer take; gradients are added to what they hold.
struct LayerValues {
  int64_t samples = 2;
  Values input{};
  std::vector<Values> parameters{};
  std::vector<Values> buffers{};
  Values output_gradient{};
  std::vector<Values> gradients{};
  std::optional<Values> branch{};  ///< remembered by a residual, or its gradient
};
LayerValues values_for(const Layer& layer, DType dtype, int64_t samples, Draw draw);
/// The same numbers in another type.
LayerValues rounded(const LayerValues& values, DType dtype);
Values rounded(const Values& values, DType dtype);

struct LayerResult {
  Values output{};
  Values input_gradient{};
  std::vector<Values> gradients{};
  std::vector<Values> buffers{};
  bool operator==(const LayerResult&) const = default;
};
/// Forward in training, then backward. `computes_in`: of mixed precision, where products have a
/// narrower type than their parameters; output and its gradient have that of `output_gradient`.
LayerResult run_layer(const Execute& execute, const Network& network, size_t layer,
                      const LayerValues& values, DType computes_in = DType::uint8);

/// The greatest |a - b| over both, which have one size.
double distance(const Values& a, const Values& b);
double greatest(const Values& values);

/// n roundings of relative size u: n u / (1 - n u) (Higham 2002, "Accuracy and Stability of
/// Numerical Algorithms", section 3.1).
double roundings(double count, DType dtype);
double unit_roundoff(DType dtype);

}  // namespace lockstep::libtorch_test
