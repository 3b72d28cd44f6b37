// Mixtures of experts: values as PyTorch gives them, parameters, prices and what is refused.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "model/network/arithmetic/expert_routing.hpp"
#include "model/network/build.hpp"
#include "model/network/execute.hpp"
#include "model/network/mixture.hpp"

using namespace lockstep;

namespace mixture_test {

namespace {

/// Multiples of 1/64, which every floating type of 32 bits and more holds exactly.
Values numbers(int64_t elements, double seed) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, std::round(64 * std::sin(1.3 * static_cast<double>(i) + seed)) / 64);
  }
  return values;
}

class OperandsByBuffer final : public Operands {
 public:
  Slice add(Values values) {
    const Slice slice{BufferId{next_}, values.dtype(), 0, values.size()};
    all_[next_++] = std::move(values);
    return slice;
  }
  const Values& at(const Slice& slice) { return all_.at(slice.buffer.value); }
  Values load(const Slice& from) override { return all_.at(from.buffer.value); }
  void store(const Slice& to, const Values& values) override { all_.at(to.buffer.value) = values; }

 private:
  uint32_t next_ = 1;
  std::map<uint32_t, Values> all_;
};

LayerDescription mixture(std::vector<NamedArgument> arguments) {
  std::vector<NamedArgument> all{{"", int64_t{4}}, {"", int64_t{3}}};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return {.kind = "MixtureOfExperts", .arguments = std::move(all)};
}

BuildResult built(std::vector<NamedArgument> arguments, Shape input = {5, 4}) {
  return build_network({.input = std::move(input),
                        .layers = {mixture(std::move(arguments))},
                        .loss = {.kind = "MSELoss"}});
}

/// Four experts, of which each of five tokens chooses two.
Network four_experts(std::vector<NamedArgument> more) {
  more.push_back({"num_experts", int64_t{4}});
  more.push_back({"top_k", int64_t{2}});
  BuildResult result = built(std::move(more));
  REQUIRE(result.ok());
  return std::move(result.network);
}

/// What one forward and one backward leave.
struct Passes {
  Values output;
  Values choices;
  Values input_gradient;
  std::vector<Values> gradients;
};

/// Expert i has numbers of seeds 3 + 3 i (w1), 4 + 3 i (w2) and 5 + 3 i (w3).
Values parameter(const MixtureArguments& arguments, size_t tensor) {
  const auto weights = static_cast<size_t>(arguments.weights_per_expert());
  const int64_t size = arguments.embed_dim * arguments.hidden_dim;
  if (tensor == 0) {
    return numbers(arguments.num_experts * arguments.embed_dim, 6);
  }
  if (!arguments.grouped) {
    const size_t expert = (tensor - 1) / weights;
    return numbers(size, static_cast<double>(3 * expert + 3 + (tensor - 1) % weights));
  }
  Values all(DType::fp64, size * arguments.num_experts);
  for (int64_t expert = 0; expert < arguments.num_experts; ++expert) {
    all.assign(expert * size,
               numbers(size, static_cast<double>(3 * expert + 2) + static_cast<double>(tensor)));
  }
  return all;
}

Passes passes_of(const Network& network, double loss_factor = 1) {
  const Layer& layer = network.layers.front();
  const auto& arguments = std::get<MixtureArguments>(layer.arguments);
  OperandsByBuffer operands;
  const Slice input = operands.add(numbers(20, 1));
  std::vector<Slice> parameters;
  std::vector<Slice> gradients;
  for (size_t i = 0; i < layer.parameters.size(); ++i) {
    parameters.push_back(operands.add(parameter(arguments, i)));
    gradients.push_back(operands.add(Values(DType::fp64, layer.parameters[i].elements())));
  }
  const Slice output = operands.add(Values(DType::fp64, 20));
  const Slice choices = operands.add(Values(DType::int64, arguments.num_experts));
  const Slice output_gradient = operands.add(numbers(20, 40));
  const Slice input_gradient = operands.add(Values(DType::fp64, 20));
  const auto run = [&](Kernel kernel, std::vector<Slice> reads, std::vector<Slice> writes,
                       std::vector<double> scalars) {
    OpLists lists;
    reads.insert(reads.end(), parameters.begin(), parameters.end());
    lists.reads = reads;
    lists.writes = writes;
    lists.scalars = scalars;
    Op op;
    op.kind = OpKind::compute;
    op.kernel = kernel;
    op.dtype = DType::fp64;
    op.lists = &lists;
    execute_kernel(op, operands, &network);
  };
  run(Kernel::layer_forward, {input}, {output, choices}, {1, 1});
  std::vector<Slice> writes{input_gradient};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  run(Kernel::layer_backward, {output_gradient, input}, writes, {1, loss_factor});
  Passes passes{operands.at(output), operands.at(choices), operands.at(input_gradient), {}};
  for (const Slice& gradient : gradients) {
    passes.gradients.push_back(operands.at(gradient));
  }
  return passes;
}

void check_close(const Values& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == std::ssize(expected));
  for (int64_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    CHECK(values.number(i) == Approx(expected[static_cast<size_t>(i)]).epsilon(1e-6).margin(1e-9));
  }
}

/// A gradient in one number: the sum of its products with numbers of seed 50.
double digest(const Values& gradient) {
  const Values factors = numbers(gradient.size(), 50);
  double sum = 0;
  for (int64_t i = 0; i < gradient.size(); ++i) {
    sum += gradient.number(i) * factors.number(i);
  }
  return sum;
}

/// Of the weights of each expert in turn.
void check_digests(const Passes& passes, const std::vector<double>& expected) {
  REQUIRE(passes.gradients.size() == expected.size() + 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("weight " << i);
    CHECK(digest(passes.gradients[i + 1]) == Approx(expected[i]).epsilon(1e-6));
  }
}

}  // namespace

// Recorded of torch 2.11 in fp64: F.linear, softmax over all experts, topk, weights over their sum,
// and for each expert index_add_ of w2(silu(w1 x) * w3 x) times its weight, with the numbers above.
TEST_CASE("a mixture of SwiGLU experts gives the values and gradients of PyTorch") {
  const Passes passes = passes_of(four_experts({}));
  check_close(passes.output, {1.1977997,   0.60637107,  -2.0912952,  2.4276646,  -0.40499416,
                              0.87992769,  -0.88277453, 0.38461154,  -1.7338347, 1.7350367,
                              -0.79103102, -0.57440818, -0.7710952,  0.20393883, 0.46059222,
                              -0.88233623, -0.11337466, -0.43581699, 0.74120562, -0.64528248});
  check_close(
      passes.input_gradient,
      {2.002546,    2.4937638,  -0.67025275, -2.8663808,  0.27736565,  0.60386501, 0.047699701,
       -0.58016864, -2.0704188, -0.38591666, 1.8505998,   1.382471,    -1.5524672, 0.16601166,
       1.6137294,   0.71132364, 0.29050085,  -0.19383554, -0.39236565, -0.01271989});
  check_close(passes.gradients[0],
              {0.72789321, 0.73433392, -0.33080647, -0.91130972, -1.2027088, -0.80766369, 0.7618381,
               1.2207112, 1.1907969, 0.81512922, -0.74501021, -1.2194594, -0.71598126, -0.74179946,
               0.31397857, 0.91005788});
  check_close(passes.gradients[1],
              {0.037313999, 0.028866647, -0.021644527, -0.040473847, 1.6468302, 1.4867619,
               -0.84167865, -1.9375976, 0.060213139, 0.46047829, 0.18605519, -0.35967822});
  check_digests(passes,
                {-4.3233948, -2.3274713, 3.2128999, 3.7165238, 0.50578315, -5.0955781, -0.22923487,
                 0.22254678, -0.39217658, 0.29862366, 0.035104357, 0.16939417});
  CHECK(passes.choices == Values::of(DType::int64, {2, 3, 3, 2}));
}

// The same with p of the softmax as weights, and 0.5 times load_balancing_loss_func added.
TEST_CASE("weights of the whole softmax and the auxiliary loss give the gradients of PyTorch") {
  const Network network = four_experts({{"norm_topk_prob", false}, {"aux_loss_coef", 0.25}});
  const Passes passes = passes_of(network, 2);  // the coefficient times the loss's factor is 0.5
  check_close(
      passes.input_gradient,
      {1.9723202,   2.4091233,  -0.68347477, -2.7901328, 0.23930441,  0.57765068,  0.071402095,
       -0.54105829, -1.823032,  -0.56859183, 1.505261,   1.3831146,   -1.4789029,  0.12139155,
       1.5192856,   0.70475476, 0.25241323,  -0.1908987, -0.35274221, 0.0052807181});
  check_close(passes.gradients[0],
              {1.0308941, 0.77029615, -0.61095851, -1.0984306, -1.3523977, -0.79763089, 0.91515306,
               1.2930373, 0.81939018, 0.58851274, -0.49828265, -0.85936526, -0.49788659, -0.561178,
               0.19408809, 0.66475863});
  check_digests(passes,
                {-3.917557, -2.1070623, 2.9086033, 3.0847357, 0.47939956, -4.1900001, -0.19807617,
                 0.21065162, -0.32576216, 0.26850025, 0.031691042, 0.15367736});
  const auto& arguments = std::get<MixtureArguments>(network.layers.front().arguments);
  const ExpertRouting routing = route(numbers(20, 1), numbers(16, 6), arguments, DType::fp64);
  CHECK(load_balancing_loss(routing, arguments) == Approx(1.9907397469017163));
}

TEST_CASE("experts of GELU and ReLU give the values of PyTorch, and a full one drops tokens") {
  const Passes gelu = passes_of(four_experts({{"expert", std::string("gelu")}}));
  check_digests(gelu, {2.4702688, 2.603291, -3.4263435, -2.6767494, 0.059043851, 0.31534829,
                       -0.092187064, -0.022762129});
  // ceil(0.75 * 5 * 2 / 4) = 2 choices each: of experts 1 and 2 a second choice is dropped.
  const Passes relu = passes_of(four_experts(
      {{"expert", std::string("relu")}, {"capacity_factor", 0.75}, {"aux_loss_coef", 0.25}}));
  check_close(relu.output, {-0.40995966, -1.1799831,  2.1464523,   -1.9121097,  0.54314015,
                            -1.1614256,  1.1491536,   -0.49894131, 1.6907746,   -0.63293393,
                            -0.77840245, 1.7410425,   -0.12162883, 0.21545679,  -0.19460613,
                            0.062551971, 0.089424801, 0.49822389,  -0.80482321, 0.67707349});
  check_close(relu.gradients[0],
              {-0.45654102, -0.40966554, 0.23470855, 0.5353788, 0.4871844, -0.080705031,
               -0.52362189, -0.20186639, -0.47678282, 0.00013142009, 0.46932673, 0.253441,
               0.44613944, 0.49023915, -0.18041339, -0.58695341});
  check_digests(relu, {2.2690778, 2.5159494, -2.1357609, -1.5657795, 0.020444293, 0.18635275,
                       -0.15701997, -0.0033933518});
  CHECK(relu.choices == Values::of(DType::int64, {2, 3, 3, 2}));  // dropped ones count
}

TEST_CASE("grouped experts compute what a list of them does, in fewer parameters") {
  const Passes list = passes_of(four_experts({}));
  const Passes grouped = passes_of(four_experts({{"grouped", true}}));
  CHECK(grouped.output == list.output);
  CHECK(grouped.input_gradient == list.input_gradient);
  REQUIRE(grouped.gradients.size() == 4);
  for (size_t weight = 0; weight < 3; ++weight) {
    for (size_t expert = 0; expert < 4; ++expert) {
      CHECK(grouped.gradients[1 + weight].slice(static_cast<int64_t>(expert) * 12, 12) ==
            list.gradients[1 + 3 * expert + weight]);
    }
  }
}

TEST_CASE("a mixture has the parameters of Mixtral, and the FLOPs of the experts chosen") {
  const Network network = four_experts({});
  const Layer& layer = network.layers.front();
  CHECK(layer.parameters.size() == 13);
  CHECK(layer.parameters[0].name == "gate.weight");
  CHECK(layer.parameters[5].name == "experts.1.w2.weight");
  CHECK(layer.parameters[5].shape == Shape{4, 3});
  CHECK(network.parameter_elements() == 16 + 4 * 3 * 12);
  CHECK(active_parameter_elements(network) == 16 + 2 * 3 * 12);
  // 5 tokens: 2 * 4 * 4 of the router, and two experts of three products of 2 * 4 * 3.
  CHECK(layer.work_of(Pass::forward).flops == Flops(5 * (32 + 2 * 72)));
  CHECK(four_experts({{"expert", std::string("relu")}}).layers[0].work_of(Pass::forward).flops ==
        Flops(5 * (32 + 2 * 48)));
  // Half of the choices are dropped at least.
  CHECK(four_experts({{"capacity_factor", 0.5}}).layers[0].work_of(Pass::forward).flops ==
        Flops(5 * (32 + 72)));
  const Network grouped = four_experts({{"grouped", true}});
  CHECK(grouped.layers[0].parameters[2].name == "experts.w2");
  CHECK(grouped.layers[0].parameters[2].shape == Shape{4, 4, 3});
}

TEST_CASE("arguments of a mixture that cannot be are refused with a remedy") {
  const auto message = [](std::vector<NamedArgument> arguments) {
    const BuildResult result = built(std::move(arguments));
    REQUIRE(result.errors.size() == 1);
    CHECK_FALSE(result.errors.front().remedy.empty());
    return result.errors.front().message;
  };
  const NamedArgument two{"num_experts", int64_t{2}};
  const NamedArgument one{"top_k", int64_t{1}};
  CHECK(message({two, {"top_k", int64_t{3}}}) == "top_k 3 is above num_experts 2");
  CHECK(message({two, {"top_k", int64_t{0}}}) == "top_k is 0");
  CHECK(message({two, one, {"capacity_factor", 0.0}}) == "capacity_factor is 0");
  CHECK(message({two, one, {"capacity_factor", -1.5}}) == "capacity_factor is -1.5");
  CHECK(message({two, one, {"aux_loss_coef", -0.1}}) == "aux_loss_coef is -0.1");
  CHECK(message({two, one, {"imbalance", 0.5}}) == "imbalance is 0.5");
  CHECK(message({two, one, {"expert", std::string("tanh")}}) == "no expert is called `tanh`");
  CHECK(message({{"num_experts", int64_t{5000}}, one}) == "num_experts is 5000");
  const BuildResult narrow = built({two, one}, {5, 6});
  REQUIRE(narrow.errors.size() == 1);
  CHECK(narrow.errors.front().message == "embed_dim is 4, but the input has shape [5, 6]");
}

}  // namespace mixture_test
