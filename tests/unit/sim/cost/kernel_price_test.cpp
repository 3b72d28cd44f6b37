#include "sim/cost/kernel_price.hpp"

#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"
#include "model/network/build.hpp"
#include "model/network/presets.hpp"
#include "sim/cost/kernel_ranges.hpp"

using namespace lockstep;

namespace kernel_price_test {
using sim::KernelTerm;

namespace {

/// Every fraction 1, nothing but the work of a kernel.
sim::KernelMachine plain_machine(const char* gpu) {
  sim::KernelMachine machine;
  machine.device = *device_preset(gpu);
  machine.constants.values.fill(1);
  for (const KernelTerm term :
       {KernelTerm::depth, KernelTerm::gap_us, KernelTerm::host_pytorch_us, KernelTerm::layout}) {
    machine.constants.values[static_cast<size_t>(term)] = 0;
  }
  return machine;
}

void set(sim::KernelMachine& machine, KernelTerm term, double value) {
  machine.constants.values[static_cast<size_t>(term)] = value;
}

constexpr double fp16_of_v100 = 125e12;  // FLOP/s, of its data sheet
constexpr double bytes_of_v100 = 900e9;  // per second

}  // namespace

TEST_CASE("kernels: a product fills whole waves of multiprocessors") {
  const sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  const auto seconds = [&](int64_t rows) {
    return sim::seconds_of_product(machine, {rows, 8 * 128, 4096}, DType::fp16, false, 1);
  };
  // 80 tiles of 256 x 128 are one wave of the 80 multiprocessors of a V100.
  const double wave = 2.0 * 80 * 256 * 128 * 4096 / fp16_of_v100;
  CHECK(seconds(10 * 256) == Approx(wave));
  CHECK(seconds(20 * 256) == Approx(2 * wave));
  // A row of tiles more begins another wave; smaller tiles make it shorter than a whole one.
  CHECK(seconds(11 * 256) > 1.2 * wave);
  CHECK(seconds(11 * 256) < 2 * wave);
}

TEST_CASE("kernels: a thin product takes as long as its operands move") {
  const sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  const int64_t size = 8192;
  const double moved = 2.0 * (size * 8 + size * 8 + size * size);
  CHECK(sim::seconds_of_product(machine, {size, size, 8}, DType::fp16, false, 1) ==
        Approx(moved / bytes_of_v100));
}

TEST_CASE("kernels: the rate is that of generation and type") {
  sim::KernelMachine machine = plain_machine("a100-sxm4-80gb");
  const sim::MatrixProduct product{12 * 256, 9 * 128, 4096};
  const double work = 2.0 * 108 * 256 * 128 * 4096;
  CHECK(sim::seconds_of_product(machine, product, DType::bf16, false, 1) == Approx(work / 312e12));
  CHECK(sim::seconds_of_product(machine, product, DType::fp32, false, 1) == Approx(work / 19.5e12));
  CHECK(sim::seconds_of_product(machine, product, DType::fp32, true, 1) == Approx(work / 156e12));
  set(machine, KernelTerm::tensor_ampere, 0.5);
  CHECK(sim::seconds_of_product(machine, product, DType::bf16, false, 1) ==
        Approx(2 * work / 312e12));
  set(machine, KernelTerm::depth, 4096);  // as long as the inner length: half of the rate
  CHECK(sim::seconds_of_product(machine, product, DType::bf16, false, 1) ==
        Approx(4 * work / 312e12));
}

TEST_CASE("kernels: small ones wait for their launch") {
  sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  set(machine, KernelTerm::host_pytorch_us, 10);
  const auto description = std::get<NetworkDescription>(describe_preset("mlp"));
  const Network network = build_network(description).network;
  sim::LayerPass pass;
  pass.layer = &network.layers.front();  // Linear 32 -> 64
  pass.samples = 1;
  CHECK(sim::seconds_of_pass(machine, pass) == Approx(10e-6));
  pass.is_backward = true;  // the weight's gradient, and the sum for the bias
  CHECK(sim::seconds_of_pass(machine, pass) == Approx(20e-6));
  machine.software = SoftwareProfile::graph;  // its own time to launch
  set(machine, KernelTerm::host_graph_us, 4);
  CHECK(sim::seconds_of_pass(machine, pass) == Approx(8e-6));
}

TEST_CASE("kernels: a kernel that streams takes its bytes at the memory's rate") {
  sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  set(machine, KernelTerm::memory, 0.9);
  CHECK(sim::seconds_of_stream(machine, Bytes(810'000'000)) == Approx(1e-3));
  set(machine, KernelTerm::update_unfused, 2);
  CHECK(sim::seconds_of_update(machine, Bytes(810'000'000)) == Approx(2e-3));
  machine.software = SoftwareProfile::fused;
  CHECK(sim::seconds_of_update(machine, Bytes(810'000'000)) == Approx(1e-3));
}

TEST_CASE("kernels: the choice of software") {
  CHECK(kernel_choice("compiled")->software == SoftwareProfile::compiled);
  CHECK(kernel_choice("graph without mpt_a100_40")->without == "mpt_a100_40");
  CHECK(!kernel_choice("jax"));
}

TEST_CASE("kernels: the range of a prediction is of its software and kind of network") {
  const auto range = sim::kernel_range("pytorch", true);
  REQUIRE(range);
  CHECK(range->software == "pytorch");
  CHECK(range->convolves);
  CHECK(range->low < range->high);
  CHECK(range->rows >= 20);
  CHECK(sim::kernel_range("compiled", false)->software.empty());  // has few rows
  const auto of_preset = [](const char* name) {
    return sim::convolves(
        build_network(std::get<NetworkDescription>(describe_preset(name))).network);
  };
  CHECK(of_preset("resnet50"));
  CHECK(of_preset("vgg16"));
  CHECK(!of_preset("gpt2"));
  CHECK(!of_preset("vit-b-16"));  // its patches are convolutions, 1 % of its FLOPs
}

namespace {

Network network_of(const LayerDescription& layer, Shape input) {
  NetworkDescription description;
  description.input = std::move(input);
  description.layers = {layer};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  REQUIRE(built.ok());
  return std::move(built.network);
}

/// A forward in fp16 of one sample: fractions are 1, so it is its FLOPs at the peak of the data
/// sheet (where tiles fill whole waves) and its bytes at the bandwidth.
double forward_seconds(const Network& network, int64_t samples) {
  sim::LayerPass pass;
  pass.layer = &network.layers.front();
  pass.samples = samples;
  pass.dtype = DType::fp16;
  return sim::seconds_of_pass(plain_machine("v100-sxm2-16gb"), pass);
}

}  // namespace

TEST_CASE("kernels: a gated feed-forward is three products and what lies between") {
  LayerDescription layer{.kind = "SwiGLU"};
  layer.arguments = {{"embed_dim", int64_t{1024}}, {"hidden_dim", int64_t{4096}}};
  const Network network = network_of(layer, {2560, 1024});
  // Rows and columns are whole waves of 80 tiles of 256 x 128: 10 x 32 and 10 x 8 of them.
  const double products = 3 * 2.0 * 2560 * 1024 * 4096 / fp16_of_v100;
  const double between = 5 * 2.0 * 2560 * 4096 / bytes_of_v100;
  CHECK(forward_seconds(network, 1) == Approx(products + between));
}

TEST_CASE("kernels: a mixture computes the chosen experts, and moves their rows") {
  LayerDescription layer{.kind = "MixtureOfExperts"};
  layer.arguments = {{"embed_dim", int64_t{1024}},
                     {"hidden_dim", int64_t{4096}},
                     {"num_experts", int64_t{2}},
                     {"top_k", int64_t{1}}};
  const Network network = network_of(layer, {5120, 1024});
  // Each expert has the 2560 rows of the gated feed-forward above.
  const double router = sim::seconds_of_product(plain_machine("v100-sxm2-16gb"), {5120, 2, 1024},
                                                DType::fp16, false, 1);
  const double products = 3 * 2.0 * 5120 * 1024 * 4096 / fp16_of_v100;
  const double between = 5 * 2.0 * 5120 * 4096 / bytes_of_v100;
  // Scores and probabilities in fp32, rows read and written, and read, weighted and added.
  const double moved = (16.0 * 5120 * 2 + 5 * 2.0 * 5120 * 1024) / bytes_of_v100;
  CHECK(forward_seconds(network, 1) == Approx(router + products + between + moved));
  // Half of the choices are dropped at least.
  layer.arguments.push_back({"capacity_factor", 0.5});
  CHECK(forward_seconds(network_of(layer, {5120, 1024}), 1) <
        router + (products + between + moved) * 0.6);
}

TEST_CASE("kernels: copies that are launched one by one each take their launch") {
  sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  set(machine, KernelTerm::host_pytorch_us, 8);
  // 9 MB take 10 us: ten parts of it a microsecond each, which the launches exceed.
  CHECK(sim::seconds_of_streams(machine, Bytes(9'000'000), 1) == Approx(10e-6));
  CHECK(sim::seconds_of_streams(machine, Bytes(9'000'000), 10) == Approx(80e-6));
  set(machine, KernelTerm::gap_us, 9);
  CHECK(sim::seconds_of_streams(machine, Bytes(9'000'000), 10) == Approx(100e-6));
}

TEST_CASE("kernels: the slowest of several GPUs sets the pace") {
  sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  set(machine, KernelTerm::unequal_gpus, 0.01);
  const auto slowest = [&](int64_t gpus) {
    machine.gpus = gpus;
    return (sim::slowest_of(machine) - 1) / 0.01;
  };
  CHECK(slowest(1) == 0);
  // Expected largest of 2, 8 and 100 draws from a normal distribution: 1 / sqrt(pi), and tables of
  // order statistics (Harter 1961).
  CHECK(slowest(2) == Approx(0.5642).epsilon(0.05));
  CHECK(slowest(8) == Approx(1.4236).epsilon(0.01));
  CHECK(slowest(100) == Approx(2.5076).epsilon(0.01));
}

namespace {

Network convolution_of(int64_t kernel, int64_t stride) {
  LayerDescription layer{.kind = "Conv2d"};
  layer.arguments = {{"in_channels", int64_t{512}}, {"out_channels", int64_t{1024}},
                     {"kernel_size", kernel},       {"stride", stride},
                     {"padding", kernel / 2},       {"bias", false}};
  return network_of(layer, {512, 64, 64});
}

double convolution_seconds(const sim::KernelMachine& machine, const Network& network, DType dtype,
                           bool is_backward) {
  return sim::seconds_of_pass(
      machine,
      {.layer = &network.layers.front(), .is_backward = is_backward, .samples = 5, .dtype = dtype});
}

}  // namespace

TEST_CASE("kernels: convolutions of 3 x 3 that move by one go by Winograd without tensor cores") {
  sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  const auto speedup = [&](int64_t kernel, int64_t stride, DType dtype) {
    const Network network = convolution_of(kernel, stride);
    set(machine, KernelTerm::winograd, 1);
    const double before = convolution_seconds(machine, network, dtype, false);
    set(machine, KernelTerm::winograd, 2);
    return before / convolution_seconds(machine, network, dtype, false);
  };
  CHECK(speedup(3, 1, DType::fp32) == Approx(2));
  CHECK(speedup(3, 2, DType::fp32) == 1);
  CHECK(speedup(1, 1, DType::fp32) == 1);
  CHECK(speedup(3, 1, DType::fp16) == 1);
}

TEST_CASE("kernels: tensor cores want images as channels_last, and others are turned") {
  sim::KernelMachine machine = plain_machine("v100-sxm2-16gb");
  set(machine, KernelTerm::layout, 1);
  const Network network = convolution_of(3, 1);
  const double images = 2.0 * 5 * (512 + 1024) * 64 * 64 / bytes_of_v100;  // read once, in fp16
  for (const bool is_backward : {false, true}) {
    machine.channels_last = false;
    const double turned = convolution_seconds(machine, network, DType::fp16, is_backward);
    const double of_vectors = convolution_seconds(machine, network, DType::fp32, is_backward);
    machine.channels_last = true;
    CHECK(turned - convolution_seconds(machine, network, DType::fp16, is_backward) ==
          Approx(2 * (is_backward ? 2 : 1) * images));
    CHECK(of_vectors == convolution_seconds(machine, network, DType::fp32, is_backward));
  }
}

TEST_CASE("kernels: attention with few key heads has narrow projections") {
  LayerDescription layer{.kind = "GroupedQueryAttention"};
  layer.arguments = {{"embed_dim", int64_t{1024}}, {"num_heads", int64_t{8}}};
  const double many = forward_seconds(network_of(layer, {2560, 1024}), 1);
  layer.arguments.push_back({"num_kv_heads", int64_t{1}});
  const double few = forward_seconds(network_of(layer, {2560, 1024}), 1);
  // Query, key and value are 1024 + 2 x 128 wide, not 3 x 1024: 10 tiles in place of 24 for each of
  // 10 rows, that is 100 (2 waves) in place of 240 (3 waves). Keys and values of 7 heads are not
  // moved: of each, order (twice a read and a write) and, of keys, the rotation.
  const double wave = 2.0 * 80 * 256 * 128 * 1024 / fp16_of_v100;
  const double moved = 2560.0 * 2 * (2 * 2 * 896 + 2 * 896) / bytes_of_v100;
  CHECK(many - few > 0.5 * wave + moved);
  CHECK(many - few < 2 * wave + moved);
}

TEST_CASE("kernels: the steps of an LSTM follow each other") {
  LayerDescription layer{.kind = "LSTM"};
  layer.arguments = {{"input_size", int64_t{1024}}, {"hidden_size", int64_t{1024}}};
  const double short_s = forward_seconds(network_of(layer, {16, 1024}), 64);
  const double long_s = forward_seconds(network_of(layer, {32, 1024}), 64);
  // Each step reads 4 x 1024 x 1024 weights again, and gates and states of 64 samples.
  const double step = 2.0 * (4 * 1024 * 1024) / bytes_of_v100;
  CHECK(long_s - short_s > 16 * step);
  CHECK(long_s - short_s < 3 * 16 * step);
}

namespace {

double product_seconds(const sim::MatrixProduct& product) {
  return sim::seconds_of_product(plain_machine("v100-sxm2-16gb"), product, DType::fp16, false, 1);
}

}  // namespace

TEST_CASE("kernels: attention in windows forms scores in each of them") {
  LayerDescription layer{.kind = "WindowAttention"};
  layer.arguments = {
      {"dim", int64_t{1024}}, {"window_size", int64_t{8}}, {"num_heads", int64_t{8}}};
  // 40 windows of 64 positions and 8 heads of 128.
  const double straight = forward_seconds(network_of(layer, {40, 64, 1024}), 1);
  const double products = product_seconds({2560, 3072, 1024}) +
                          product_seconds({2560, 1024, 1024}) +
                          product_seconds({64, 64, 128, 320}) + product_seconds({64, 128, 64, 320});
  const double state = 2560.0 * 1024 * 2 / bytes_of_v100;
  const double matrix = 2560.0 * 64 * 8 * 2 / bytes_of_v100;
  // Into windows and back, the scaled query, and the order of heads of four states, each a read and
  // a write; the bias is added to scores that the softmax reads and writes.
  CHECK(straight == Approx(products + 14 * state + 3 * matrix));
  layer.arguments.push_back({"shift_size", int64_t{4}});
  const double shifted = forward_seconds(network_of(layer, {40, 64, 1024}), 1);
  CHECK(shifted - straight == Approx(4 * state + 2 * matrix));
}

TEST_CASE("kernels: attention to another tensor makes keys of that one's positions") {
  LayerDescription positions{.kind = "Positions"};
  positions.arguments = {{"count", int64_t{640}}};
  LayerDescription cross{.kind = "CrossAttention"};
  cross.arguments = {{"embed_dim", int64_t{1024}}, {"num_heads", int64_t{8}}};
  LayerDescription aside{.kind = "Aside"};
  aside.layers = {cross};
  aside.shortcut = {positions};
  const BuildResult built = build_network({.input = Shape{2560, 1024},
                                           .flash_attention = false,
                                           .layers = {aside},
                                           .loss = {.kind = "MSELoss"}});
  REQUIRE(built.ok());
  sim::LayerPass pass;
  for (const Layer& layer : built.network.layers) {
    pass.layer = layer.kind == LayerKind::cross_attention ? &layer : pass.layer;
  }
  pass.samples = 1;
  pass.dtype = DType::fp16;
  const double products =
      2 * product_seconds({2560, 1024, 1024}) + 2 * product_seconds({640, 1024, 1024}) +
      product_seconds({2560, 640, 128, 8}) + product_seconds({2560, 128, 640, 8});
  const double moved = (4.0 * (2560 + 640) * 1024 + 8.0 * 2560 * 640) * 2 / bytes_of_v100;
  CHECK(sim::seconds_of_pass(plain_machine("v100-sxm2-16gb"), pass) == Approx(products + moved));
}

}  // namespace kernel_price_test
