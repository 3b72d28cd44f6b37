#include "sim/cost/collective_price.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "model/cluster/presets.hpp"

using namespace lockstep;
using namespace lockstep::literals;
using namespace lockstep::sim;

namespace collective_price_test {

namespace {

NcclPricing::Setup setup_of(const char* preset, int nodes, int64_t ranks) {
  NcclPricing::Setup setup{*cluster_preset(preset), {ranks, nodes}};
  setup.cluster.nodes = nodes;
  setup.correction = no_correction();
  return setup;
}

NcclPricing plain(const char* preset, int nodes, int64_t ranks) {
  return NcclPricing(setup_of(preset, nodes, ranks));
}

}  // namespace

TEST_CASE("without correction a call takes what the tuner counts") {
  const NcclPricing a100 = plain("dgx-a100", 1, 8);
  CHECK(a100.price(OpKind::all_reduce, 8_B).way == "Ring LL");
  // 6.6 + 14 x 0.6 us, and 8 B at 87.7 x 8/14 GB/s.
  CHECK(a100.price(OpKind::all_reduce, 8_B).time_us() == Approx(15.0 + 8 / 50114.0).epsilon(1e-6));
  // 8.4 + 14 x 3.4 us, and the bytes at 240 x 8/14 GB/s.
  const CollectivePrice large = a100.price(OpKind::all_reduce, 4_GiB);
  CHECK(large.way == "Ring Simple");
  CHECK(large.fixed_us == Approx(56.0));
  CHECK(large.transfer_us == Approx(4294967296.0 / (240e3 * 8 / 14)));
}

TEST_CASE("the tuner counts the larger side: all that is gathered, all that is scattered") {
  const NcclPricing a100 = plain("dgx-a100", 1, 8);
  const double seven_steps_GBps = 240.0 * 8 / 7;
  CHECK(a100.price(OpKind::all_gather, 1_GiB).transfer_us ==
        Approx(8 * 1073741824.0 / (1000 * seven_steps_GBps)));
  CHECK(a100.price(OpKind::reduce_scatter, 8_GiB).transfer_us ==
        Approx(8 * 1073741824.0 / (1000 * seven_steps_GBps)));
  CHECK(larger_side(OpKind::all_gather, 1_KiB, 8) == 8_KiB);
  CHECK(larger_side(OpKind::reduce_scatter, 1_KiB, 8) == 1_KiB);
}

TEST_CASE("a barrier is an all_reduce of 4 bytes, and one member pays nothing") {
  const NcclPricing a100 = plain("dgx-a100", 1, 8);
  CHECK(a100.price(OpKind::barrier, {}).time_us() == a100.price(OpKind::all_reduce, 4_B).time_us());
  CHECK(plain("dgx-a100", 1, 1).price(OpKind::all_reduce, 1_GiB).time_us() == 0);
}

TEST_CASE("a reported latency of the NIC counts once for each step between nodes") {
  // 2 x (7 x 0.6 + 5 + 75) + 6.8, and 25.2 without it.
  CHECK(plain("p4d.24xlarge", 2, 16).price(OpKind::all_reduce, 8_B).fixed_us == Approx(175.2));
  CHECK(plain("dgx-a100", 2, 16).price(OpKind::all_reduce, 8_B).fixed_us == Approx(25.2));
}

TEST_CASE("a limit on thread blocks limits the rate in proportion") {
  NcclPricing::Setup setup = setup_of("dgx-a100", 1, 8);
  const double unlimited = NcclPricing(setup).price(OpKind::all_reduce, 4_GiB).transfer_us;
  setup.settings.channels_max = 6;  // of 2 x 12
  CHECK(NcclPricing(setup).price(OpKind::all_reduce, 4_GiB).transfer_us == Approx(4 * unlimited));
  setup.settings.channels_min = 12;  // wins over the upper limit
  CHECK(NcclPricing(setup).price(OpKind::all_reduce, 4_GiB).transfer_us == Approx(2 * unlimited));
  setup.settings.channels_max = 32;
  CHECK(NcclPricing(setup).price(OpKind::all_reduce, 4_GiB).transfer_us == Approx(unlimited));
}

TEST_CASE("without shared memory cards that may not reach each other use the NIC") {
  NcclPricing::Setup setup = setup_of("workstation-4x4090", 1, 4);
  CHECK(NcclPricing(setup).path() == PathClass::host_memory);
  setup.settings.has_shared_memory = false;
  const NcclPricing over_nic(setup);
  CHECK(over_nic.path() == PathClass::tcp);
  // One NIC of 10 Gb/s, slower than any rate of NCCL's list.
  CHECK(over_nic.communicator().ring.channels == 1);
  CHECK(over_nic.communicator().ring.intra == Approx(1.25));
}

TEST_CASE("lists that leave nothing fall back, as NCCL's do") {
  NcclPricing::Setup setup = setup_of("dgx-a100", 1, 8);
  setup.settings = read_nccl_settings({{"NCCL_ALGO", "Tree"}}).settings;
  const NcclPricing pricing(setup);
  CHECK(pricing.price(OpKind::all_reduce, 8_B).way == "Tree LL");
  CHECK(pricing.price(OpKind::all_gather, 8_B).way == "Ring LL");
}

TEST_CASE("terms of the correction add and multiply where they say") {
  NcclPricing::Setup setup = setup_of("dgx-a100", 1, 8);
  const CollectivePrice bare = NcclPricing(setup).price(OpKind::all_reduce, 4_GiB);
  setup.correction.of(CorrectionTerm::launch_ampere) = 5;
  setup.correction.of(CorrectionTerm::shared_process) = 2;
  setup.correction.of(CorrectionTerm::efficiency_nvlink) = 0.5;
  setup.correction.of(CorrectionTerm::latency_within) = 3;
  setup.gpus_per_process = 8;
  const CollectivePrice corrected = NcclPricing(setup).price(OpKind::all_reduce, 4_GiB);
  CHECK(corrected.fixed_us == Approx(5 + 7 * 2 + 3 * bare.fixed_us));
  CHECK(corrected.transfer_us == Approx(2 * bare.transfer_us));
  setup.correction = no_correction();
  setup.correction.of(CorrectionTerm::pipeline) = 1;
  CHECK(NcclPricing(setup).price(OpKind::all_reduce, 4_GiB).fixed_us ==
        Approx(bare.fixed_us + std::sqrt(bare.fixed_us * bare.transfer_us)));
}

TEST_CASE("a TCP connection has the rate of its sockets") {
  NcclPricing::Setup setup = setup_of("dgx-1v", 2, 16);
  setup.cluster.node.nics = 1;
  setup.cluster.network.fabric = Fabric::tcp;
  setup.cluster.network.bandwidth = BytesPerSecond(12'500'000'000);
  setup.correction.of(CorrectionTerm::efficiency_tcp) = 0.8;
  const auto rate_of = [&](int threads, int sockets) {
    setup.settings.socket_threads = threads;
    setup.settings.sockets_per_thread = sockets;
    const CollectivePrice price = NcclPricing(setup).price(OpKind::all_reduce, 1_GiB);
    return 1.073741824e9 * 2 * 15 / 16 / (price.transfer_us * 1e3);  // GB/s on the bus
  };
  setup.correction.of(CorrectionTerm::socket_rate) = 1000;
  const double network = rate_of(1, 1);
  setup.correction.of(CorrectionTerm::socket_rate) = 2.5;
  const NcclPricing pricing(setup);
  const NcclGraph& ring = pricing.communicator().ring;
  REQUIRE(ring.inter > 2.5 / 0.8);
  // One socket for each channel, and two; enough of them leave what the network carries.
  CHECK(rate_of(1, 1) == Approx(network * 2.5 / (0.8 * ring.inter)));
  CHECK(rate_of(2, 1) == Approx(network * 5.0 / (0.8 * ring.inter)));
  CHECK(rate_of(4, 8) == Approx(network));
  // What NCCL gives a connection on such NICs by itself.
  setup.settings = {};
  const auto rate = [&] { return NcclPricing(setup).price(OpKind::all_reduce, 1_GiB).transfer_us; };
  const double one_socket = rate();
  setup.cluster.network.socket_threads = 2;
  CHECK(rate() == Approx(one_socket / 2));
  CHECK(cluster_preset("a2-highgpu-8g")->network.socket_threads == 4);
  CHECK(cluster_preset("p3.16xlarge")->network.sockets_per_thread == 8);
}

TEST_CASE("what no measurement covers is an extrapolation and says so") {
  CHECK(plain("dgx-a100", 1, 8).extrapolations().empty());
  CHECK(plain("dgx-a100", 64, 512).extrapolations().size() == 1);
  CHECK(plain("g5.48xlarge", 1, 8).extrapolations().size() == 1);  // PCIe
}

TEST_CASE("bus bandwidth has the factors of nccl-tests") {
  CHECK(bus_factor(OpKind::all_reduce, 8) == Approx(1.75));
  CHECK(bus_factor(OpKind::all_gather, 8) == Approx(0.875));
  CHECK(bus_factor(OpKind::all_to_all, 4) == Approx(0.75));
  CHECK(bus_factor(OpKind::broadcast, 8) == 1);
}

}  // namespace collective_price_test
