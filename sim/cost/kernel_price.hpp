#pragma once

#include <cstdint>

#include "model/cluster/device.hpp"
#include "model/cluster/software.hpp"
#include "model/network/layer.hpp"
#include "sim/cost/kernel_constants.hpp"

namespace lockstep::sim {

/// The device and the software of which kernels are priced.
struct KernelMachine {
  DeviceModel device{};
  SoftwareProfile software = SoftwareProfile::pytorch;
  bool tf32_products = false;  ///< fp32 matrix products on tensor cores; convolutions always are
  bool channels_last = false;  ///< images lie between layers as tensor cores take them
  int64_t gpus = 1;            ///< that work in step with each other
  KernelConstants constants{};
};

/// One pass of a layer, or of a loss, over a batch.
struct LayerPass {
  const Layer* layer = nullptr;
  bool is_backward = false;
  bool is_core_alone = false;  ///< of attention, what selective recomputation runs again
  int64_t samples = 1;
  DType dtype = DType::fp32;
  Bytes traffic{};  ///< read and written by the layer in all, as Op::bytes
  Bytes cast{};     ///< of parameters that have another type than the layer computes in
};

/// Time of the kernels that the pass launches, in seconds: each the longer of its work on the
/// device and of its launch by the host.
double seconds_of_pass(const KernelMachine& machine, const LayerPass& pass);
/// Of an update of parameters that moves so many bytes if it touches each tensor once.
double seconds_of_update(const KernelMachine& machine, Bytes traffic);
/// Between two kernels.
double seconds_of_gap(const KernelMachine& machine);
/// Of any other kernel that streams so many bytes.
double seconds_of_stream(const KernelMachine& machine, Bytes traffic);
/// Of so many kernels, which the software launches one by one, that stream so many bytes in all.
double seconds_of_streams(const KernelMachine& machine, Bytes traffic, int64_t kernels);
/// By how much the slowest GPU is slower than one alone is on average, as a factor: the expected
/// largest of as many draws from a normal distribution (Blom 1958), as all wait for it.
double slowest_of(const KernelMachine& machine);

/// A product (rows x inner) x (inner x columns), `count` times at once.
struct MatrixProduct {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t inner = 1;
  int64_t count = 1;
};
/// On tensor cores or vector units at this part of what large products reach.
double seconds_of_product(const KernelMachine& machine, const MatrixProduct& product, DType dtype,
                          bool on_tf32, double part);
/// Streaming multiprocessors: as the data sheets of the presets say, by generation.
int64_t multiprocessors(const DeviceModel& device);

}  // namespace lockstep::sim
