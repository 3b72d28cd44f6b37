#include "sim/cost/kernel_price.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::sim {

namespace {

KernelTerm term_of(KernelTerm first, SoftwareProfile software) {
  return static_cast<KernelTerm>(static_cast<int>(first) + static_cast<int>(software));
}

double microseconds(double count) { return count * 1e-6; }

int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// Output tiles of matrix kernels, and the part of the rate that a kernel with such tiles reaches:
/// a smaller tile reads each operand more often.
struct Tile {
  int64_t rows;
  int64_t columns;
  double part;
};
constexpr Tile tiles[] = {{256, 128, 1.0}, {128, 128, 0.95}, {128, 64, 0.8}, {64, 64, 0.6}};

double tensor_fraction(const KernelMachine& machine) {
  const int capability = machine.device.compute_capability;
  const KernelConstants& constants = machine.constants;
  if (capability >= 90) {
    return constants[KernelTerm::tensor_hopper];
  }
  if (capability > 80) {
    return constants[KernelTerm::tensor_ga102];
  }
  if (capability == 80) {
    return constants[KernelTerm::tensor_ampere];
  }
  return constants[capability > 70 ? KernelTerm::tensor_turing : KernelTerm::tensor_volta];
}

bool is_half(DType dtype) { return dtype == DType::fp16 || dtype == DType::bf16; }

/// FLOP/s that large products reach.
double product_rate(const KernelMachine& machine, DType dtype, bool on_tf32) {
  const DeviceModel& device = machine.device;
  if (is_half(dtype)) {
    return static_cast<double>(device.speed(dtype).peak.count()) * tensor_fraction(machine);
  }
  if (on_tf32 && device.tf32) {
    return static_cast<double>(device.tf32->peak.count()) * tensor_fraction(machine) *
           machine.constants[KernelTerm::tf32];
  }
  return static_cast<double>(device.speed(dtype).peak.count()) *
         machine.constants[KernelTerm::vector];
}

double memory_rate(const KernelMachine& machine) {
  return static_cast<double>(machine.device.memory_bandwidth.count()) *
         machine.constants[KernelTerm::memory];
}

/// Adds up the kernels of a pass.
class KernelSum {
 public:
  explicit KernelSum(const KernelMachine& machine)
      : machine_(machine),
        host_(microseconds(
            machine.constants[term_of(KernelTerm::host_pytorch_us, machine.software)])) {}

  void add(double device_seconds) {
    seconds_ +=
        std::max(device_seconds + microseconds(machine_.constants[KernelTerm::gap_us]), host_);
  }
  void stream(double bytes) { add(bytes / memory_rate(machine_)); }
  /// Kernels between which a tensor goes through memory, as many as the software needs.
  void element_wise(double bytes) {
    stream(bytes * machine_.constants[term_of(KernelTerm::passes_pytorch, machine_.software)]);
  }
  double seconds() const { return seconds_; }

 private:
  const KernelMachine& machine_;
  double host_;
  double seconds_ = 0;
};

bool has_fused_scores(SoftwareProfile software) {
  return software != SoftwareProfile::pytorch && software != SoftwareProfile::compiled;
}

void add_product(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass,
                 const MatrixProduct& forward, double part) {
  const bool tf32 = machine.tf32_products;
  const auto seconds = [&](const MatrixProduct& product) {
    return seconds_of_product(machine, product, pass.dtype, tf32, part);
  };
  if (!pass.is_backward) {
    sum.add(seconds(forward));
    return;
  }
  const auto [rows, columns, inner, count] = forward;
  if (pass.layer->work_of(Pass::input_gradient).runs) {
    sum.add(seconds({rows, inner, columns, count}));
  }
  if (pass.layer->work_of(Pass::weight_gradient).runs) {
    sum.add(seconds({inner, columns, rows, count}));
  }
}

int64_t rows_of(const LayerPass& pass) {
  return pass.samples * elements_of(pass.layer->input) / pass.layer->input.back();
}

void add_linear(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const auto& linear = std::get<LinearArguments>(pass.layer->arguments);
  const int64_t rows = rows_of(pass);
  add_product(sum, machine, pass, {rows, linear.out_features, linear.in_features}, 1);
  if (pass.is_backward && linear.bias) {  // sums the gradients of all rows
    sum.stream(static_cast<double>(rows * linear.out_features * size_of(pass.dtype)));
  }
}

/// Scores, softmax, dropout and weighted sum.
void add_attention_core(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const Layer& layer = *pass.layer;
  const auto& attention = std::get<AttentionArguments>(layer.arguments);
  const int64_t positions = layer.input[0];
  const int64_t width = attention.embed_dim / attention.num_heads;
  const int64_t heads = pass.samples * attention.num_heads;
  const KernelConstants& constants = machine.constants;
  const bool is_flash = layer.saves.elements == 4 * elements_of(layer.input);
  if (is_flash) {
    // Dao et al. 2022: the backward computes the scores again, 2.5 times the products. A causal
    // mask leaves out half of the blocks.
    const double half = layer.kind == LayerKind::causal_self_attention ? 0.5 : 1;
    const double work = 4.0 * static_cast<double>(heads) * static_cast<double>(positions) *
                        static_cast<double>(positions * width) * half *
                        (pass.is_backward ? 2.5 : 1);
    sum.add(work / (product_rate(machine, pass.dtype, machine.tf32_products) *
                    constants[KernelTerm::flash]));
    return;
  }
  const double part = constants[KernelTerm::batched];
  const MatrixProduct scores{positions, positions, width, heads};
  const MatrixProduct sums{positions, width, positions, heads};
  for (int time = 0; time < (pass.is_backward ? 2 : 1); ++time) {
    for (const MatrixProduct& product : {scores, sums}) {
      sum.add(seconds_of_product(machine, product, pass.dtype, machine.tf32_products, part));
    }
  }
  const bool is_fused = has_fused_scores(machine.software);
  const double passes = constants[is_fused ? KernelTerm::scores_fused : KernelTerm::scores_unfused];
  const double matrix = static_cast<double>(heads) * static_cast<double>(positions * positions) *
                        static_cast<double>(size_of(pass.dtype));
  const int kernels = is_fused ? 2 : 4;
  for (int kernel = 0; kernel < kernels; ++kernel) {
    sum.stream(passes * matrix / kernels);
  }
}

void add_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  if (!pass.is_core_alone) {
    const int64_t width = std::get<AttentionArguments>(pass.layer->arguments).embed_dim;
    const int64_t rows = rows_of(pass);
    add_product(sum, machine, pass, {rows, 3 * width, width}, 1);
    add_product(sum, machine, pass, {rows, width, width}, 1);
    // Biases, and the order of heads: query, key, value and their sum are moved once.
    sum.element_wise(8.0 * static_cast<double>(rows * width * size_of(pass.dtype)));
  }
  add_attention_core(sum, machine, pass);
}

void add_convolution(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const Layer& layer = *pass.layer;
  const auto& arguments = std::get<Conv2dArguments>(layer.arguments);
  const KernelConstants& constants = machine.constants;
  const int64_t pixels = pass.samples * elements_of(layer.output) / arguments.out_channels;
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
  const double part =
      constants[on_tensor_cores ? KernelTerm::convolution : KernelTerm::convolution_fp32];
  // Tensor-core kernels take channels in eights, whatever the first layer has.
  const int64_t padded =
      on_tensor_cores
          ? std::max<int64_t>(inner, 8 * arguments.kernel_size[0] * arguments.kernel_size[1])
          : inner;
  KernelSum products(with_tf32);
  add_product(products, with_tf32, pass, {pixels, arguments.out_channels, padded}, part);
  const int times = pass.is_backward ? 2 : 1;
  sum.add(std::max(products.seconds(), times * moved / memory_rate(machine)));
}

}  // namespace

int64_t multiprocessors(const DeviceModel& device) {
  switch (device.compute_capability) {
    case 70: return 80;                                                         // V100
    case 75: return 68;                                                         // RTX 2080 Ti
    case 80: return 108;                                                        // A100
    case 86: return 82;                                                         // RTX 3090
    case 89: return 128;                                                        // RTX 4090
    case 90: return device.name.find("pcie") != std::string::npos ? 114 : 132;  // H100
    default: return 148;                                                        // B200
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
    case LayerKind::conv2d: add_convolution(sum, machine, pass); break;
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention: add_attention(sum, machine, pass); break;
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

double seconds_of_stream(const KernelMachine& machine, Bytes traffic) {
  return static_cast<double>(traffic.count()) / memory_rate(machine) +
         microseconds(machine.constants[KernelTerm::gap_us]);
}

}  // namespace lockstep::sim
