#include "sim/cost/kernel_price.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <numbers>
#include <string_view>

#include "sim/cost/kernel_sum.hpp"

namespace lockstep::sim {

namespace {

int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// Output tiles of matrix kernels, and the part of the rate that a kernel with such tiles reaches:
/// a smaller tile reads each operand more often.
struct Tile {
  int64_t rows;
  int64_t columns;
  double part;
};
constexpr Tile tiles[] = {{256, 128, 1.0}, {128, 128, 0.95}, {128, 64, 0.8}, {64, 64, 0.6}};

void add_linear(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const auto& linear = std::get<LinearArguments>(pass.layer->arguments);
  const int64_t rows = rows_of(pass);
  add_product(sum, machine, pass, {rows, linear.out_features, linear.in_features}, 1);
  if (pass.is_backward && linear.bias) {  // sums the gradients of all rows
    sum.stream(static_cast<double>(rows * linear.out_features * size_of(pass.dtype)));
  }
}

/// Of cuDNN, where nothing is reduced to tensor cores: 3 x 3 windows that move by one pixel.
bool takes_winograd(const Conv2dArguments& convolution) {
  return convolution.kernel_size == Pair{3, 3} && convolution.stride == Pair{1, 1} &&
         convolution.dilation == Pair{1, 1};
}

void add_convolution(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const Layer& layer = *pass.layer;
  const bool is_transposed = layer.kind == LayerKind::conv_transpose2d;
  const Conv2dArguments& arguments =
      is_transposed ? std::get<ConvTranspose2dArguments>(layer.arguments).mirrored
                    : std::get<Conv2dArguments>(layer.arguments);
  const KernelConstants& constants = machine.constants;
  // A transposed convolution is the gradient of its mirror image: the product of that one.
  const Shape& image = is_transposed ? layer.input : layer.output;
  const int64_t pixels = pass.samples * elements_of(image) / arguments.out_channels;
  const int64_t inner = arguments.in_channels / arguments.groups * arguments.kernel_size[0] *
                        arguments.kernel_size[1];
  const double moved = static_cast<double>(size_of(pass.dtype)) *
                       static_cast<double>(pass.samples) *
                       static_cast<double>(elements_of(layer.input) + elements_of(layer.output));
  if (arguments.groups > 1) {
    const double work = 2.0 * static_cast<double>(pixels) *
                        static_cast<double>(arguments.out_channels) * static_cast<double>(inner);
    const double rate = static_cast<double>(machine.device.speed(DType::fp32).peak.count()) *
                        constants[KernelTerm::grouped];
    const double once = std::max(work / rate, moved / memory_rate(machine));
    for (int time = 0; time < (pass.is_backward ? 2 : 1); ++time) {
      sum.add(once);
    }
    return;
  }
  // cudnn.allow_tf32 is true by default, whatever products do.
  KernelMachine with_tf32 = machine;
  with_tf32.tf32_products = true;
  const bool on_tensor_cores = is_half(pass.dtype) || machine.device.tf32.has_value();
  double part = constants[on_tensor_cores ? KernelTerm::convolution : KernelTerm::convolution_fp32];
  if (!on_tensor_cores && takes_winograd(arguments)) {
    part *= constants[KernelTerm::winograd];
  }
  // Tensor-core kernels take channels in eights, whatever the first layer has.
  const int64_t padded =
      on_tensor_cores
          ? std::max<int64_t>(inner, 8 * arguments.kernel_size[0] * arguments.kernel_size[1])
          : inner;
  KernelSum products(with_tf32);
  add_product(products, with_tf32, pass, {pixels, arguments.out_channels, padded}, part);
  const int times = pass.is_backward ? 2 : 1;
  sum.add(std::max(products.seconds(), times * moved / memory_rate(machine)));
  if (on_tensor_cores && !machine.channels_last) {
    sum.add(2 * times * constants[KernelTerm::layout] * moved / memory_rate(machine));
  }
}

}  // namespace

namespace {

/// GPUs whose number differs from that of the largest preset of their compute capability.
struct CountedGpu {
  std::string_view name;
  int64_t multiprocessors;
};
constexpr CountedGpu counted_gpus[] = {{"titan-rtx", 72},     {"quadro-rtx-8000", 72}, {"a30", 56},
                                       {"a40", 84},           {"a6000", 84},           {"l40", 142},
                                       {"rtx-6000-ada", 142}, {"h100-pcie-80gb", 114}};

}  // namespace

int64_t multiprocessors(const DeviceModel& device) {
  for (const CountedGpu& each : counted_gpus) {
    if (device.name == each.name) {
      return each.multiprocessors;
    }
  }
  switch (device.compute_capability) {
    case 60: return 56;    // P100
    case 61: return 30;    // P40
    case 70: return 80;    // V100
    case 75: return 68;    // RTX 2080 Ti
    case 80: return 108;   // A100
    case 86: return 82;    // RTX 3090
    case 89: return 128;   // RTX 4090
    case 90: return 132;   // H100
    case 103: return 160;  // B300
    case 120: return 170;  // RTX 5090
    default: return 148;   // B200
  }
}

double seconds_of_product(const KernelMachine& machine, const MatrixProduct& product, DType dtype,
                          bool on_tf32, double part) {
  const auto [rows, columns, inner, count] = product;
  const double depth = machine.constants[KernelTerm::depth];
  const double rate = product_rate(machine, dtype, on_tf32) * part * static_cast<double>(inner) /
                      (static_cast<double>(inner) + depth);
  const int64_t units = multiprocessors(machine.device);
  double best = 0;
  for (const Tile& tile : tiles) {
    const int64_t grid = parts(rows, tile.rows) * parts(columns, tile.columns) * count;
    // Few tiles: the inner length is split among idle units, in pieces of 256 at least.
    const int64_t split =
        grid >= units ? 1 : std::clamp<int64_t>(units / grid, 1, std::max<int64_t>(1, inner / 256));
    const int64_t blocks = grid * split;
    const double waves =
        static_cast<double>(parts(blocks, units) * units) / static_cast<double>(blocks);
    const double work = 2.0 * static_cast<double>(grid) *
                        static_cast<double>(tile.rows * tile.columns) * static_cast<double>(inner);
    const double seconds = work * waves / (rate * tile.part);
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  const double moved = static_cast<double>(size_of(dtype)) * static_cast<double>(count) *
                       (static_cast<double>(rows) * static_cast<double>(inner) +
                        static_cast<double>(columns) * static_cast<double>(inner) +
                        static_cast<double>(rows) * static_cast<double>(columns));
  return std::max(best, moved / memory_rate(machine));
}

double seconds_of_pass(const KernelMachine& machine, const LayerPass& pass) {
  KernelSum sum(machine);
  if (pass.cast > Bytes{}) {  // reads one type and writes the other, of half the size
    sum.element_wise(1.5 * static_cast<double>(pass.cast.count()));
  }
  switch (pass.layer->kind) {
    case LayerKind::linear: add_linear(sum, machine, pass); break;
    case LayerKind::conv1d:
    case LayerKind::conv2d:
    case LayerKind::conv_transpose2d: add_convolution(sum, machine, pass); break;
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention:
    case LayerKind::attention_core: add_attention(sum, machine, pass); break;
    case LayerKind::grouped_query_attention: add_grouped_attention(sum, machine, pass); break;
    case LayerKind::biased_attention:
    case LayerKind::cross_attention: add_aside_attention(sum, machine, pass); break;
    case LayerKind::window_attention: add_window_attention(sum, machine, pass); break;
    case LayerKind::attention_projections: add_attention_projections(sum, machine, pass); break;
    case LayerKind::swiglu: add_swiglu(sum, machine, pass); break;
    case LayerKind::mixture_of_experts: add_mixture(sum, machine, pass); break;
    case LayerKind::lstm: add_lstm(sum, machine, pass); break;
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
    case LayerKind::group_norm:
      // Statistics, then the normalized values: what is read is read twice.
      sum.element_wise(1.5 * static_cast<double>(pass.traffic.count()));
      break;
    default:
      if (pass.traffic > Bytes{}) {
        sum.element_wise(static_cast<double>(pass.traffic.count()));
      }
  }
  return sum.seconds();
}

double seconds_of_update(const KernelMachine& machine, Bytes traffic) {
  const bool is_fused = machine.software != SoftwareProfile::pytorch;
  const double passes =
      machine.constants[is_fused ? KernelTerm::update_fused : KernelTerm::update_unfused];
  return static_cast<double>(traffic.count()) * passes / memory_rate(machine);
}

double seconds_of_gap(const KernelMachine& machine) {
  return machine.constants[KernelTerm::gap_us] * 1e-6;
}

double seconds_of_stream(const KernelMachine& machine, Bytes traffic) {
  return static_cast<double>(traffic.count()) / memory_rate(machine) + seconds_of_gap(machine);
}

double seconds_of_streams(const KernelMachine& machine, Bytes traffic, int64_t kernels) {
  KernelSum sum(machine);
  sum.stream(static_cast<double>(traffic.count()) / static_cast<double>(kernels));
  return sum.seconds() * static_cast<double>(kernels);
}

double slowest_of(const KernelMachine& machine) {
  if (machine.gpus < 2) {
    return 1;
  }
  const auto count = static_cast<double>(machine.gpus);
  const double quantile = (count - 0.375) / (count + 0.25);
  const double largest = std::numbers::sqrt2 * boost::math::erf_inv(2 * quantile - 1);
  return 1 + machine.constants[KernelTerm::unequal_gpus] * largest;
}

}  // namespace lockstep::sim
