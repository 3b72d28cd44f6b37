// A kernel that throws on the device: in both worlds the rank hears of it where it settles the
// kernel's ticket, with the kernel's own words and its statement.
#include "model/network/build.hpp"
#include "tests/conformance/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace broken_kernel_test {

namespace {

Network one_embedding() {
  LayerDescription layer;
  layer.kind = "Embedding";
  layer.arguments = {{"", int64_t{4}}, {"", int64_t{2}}};
  NetworkDescription description;
  description.name = "one embedding";
  description.input = {1};
  description.layers = {layer};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  REQUIRE(built.ok());
  return std::move(built.network);
}

Ticket look_up(Rank& rank, double index, SiteId site) {
  const Slice reads[] = {metric(rank, DType::int64, {index}),
                         metric(rank, DType::fp32, {0, 1, 2, 3, 4, 5, 6, 7})};
  const Slice writes[] = {rank.allocate(Purpose::activation, DType::fp32, 2)};
  const double samples = 1;
  KernelCall call;
  call.kernel = Kernel::layer_forward;
  call.reads = reads;
  call.writes = writes;
  call.scalars = {&samples, 1};
  return rank.compute(call, {.site = site});
}

Program looks_beyond_the_table(Rank& rank, Seen& seen) {
  const Ticket found = look_up(rank, rank.id() == 1 ? 9 : 3, site_id("look up"));
  const Slice data = metric(rank, DType::fp32, {1});
  const Ticket met = rank.barrier(world_group);
  co_await rank.settle(met);
  seen.push_back(rank.read(data));
  co_await rank.settle(found);
}

Program never_looks_at_it(Rank& rank, Seen&) {
  look_up(rank, 9, site_id("look up"));
  const Ticket met = rank.barrier(world_group);
  co_await rank.settle(met);
}

}  // namespace

TEST_CASE("a rank whose kernel breaks says what the kernel said, and at which statement") {
  const Network network = one_embedding();
  Worlds worlds;
  for (const Body& body : {Body(looks_beyond_the_table), Body(never_looks_at_it)}) {
    RunOptions options = world_of(2);
    options.network = &network;
    const Arms arms = worlds.run(options, body);
    CHECK(disagreements(arms) == Texts{});
    for (const Arm* arm : {&arms.simulated, &arms.real}) {
      const RankEnd& end = arm->result.ends[1];
      CHECK(end.kind == RankEnd::Kind::raised);
      CHECK(end.message == arms.simulated.result.ends[1].message);
      CHECK(end.message.find("9") != std::string::npos);
      CHECK(end.site == site_id("look up"));
    }
  }
}

}  // namespace broken_kernel_test
