#include <nlohmann/json.hpp>

#include "io/calibration/calibration_file.hpp"
#include "io/calibration/calibration_format.hpp"

namespace lockstep {

namespace {

// In the order in which a reader wants to see them.
using OrderedJson = nlohmann::ordered_json;

void add_time(OrderedJson& json, const MeasuredTime& time) {
  json["low_s"] = seconds(time.low);
  json["median_s"] = seconds(time.median);
  json["high_s"] = seconds(time.high);
}

OrderedJson json_of(const CalibrationOrigin& origin) {
  return {{"lockstep_version", origin.lockstep_version},
          {"backend", origin.backend},
          {"device", origin.device},
          {"preset", origin.preset},
          {"host_cpu", origin.host_cpu},
          {"cores", origin.cores},
          {"ranks", origin.ranks},
          {"libraries", origin.libraries},
          {"driver", origin.driver},
          {"date", origin.date},
          {"command", origin.command},
          {"load_average", origin.load_average},
          {"is_quick", origin.is_quick}};
}

OrderedJson json_of(const KernelCurve& curve) {
  OrderedJson json = {{"kernel", name_of(curve.kernel)},
                      {"layer", curve.layer ? name_of(*curve.layer) : ""},
                      {"dtype", name_of(curve.dtype)},
                      {"ranks", curve.ranks},
                      {"points", OrderedJson::array()}};
  for (const KernelPoint& point : curve.points) {
    OrderedJson one = {{"flops", point.flops.count()}, {"bytes", point.traffic.count()}};
    add_time(one, point.time);
    json["points"].push_back(one);
  }
  return json;
}

OrderedJson json_of(const TransferCurve& curve) {
  OrderedJson json = {
      {"operation", name_of(curve.kind)}, {"ranks", curve.ranks}, {"points", OrderedJson::array()}};
  for (const TransferPoint& point : curve.points) {
    OrderedJson one = {{"bytes", point.bytes.count()}};
    add_time(one, point.time);
    json["points"].push_back(one);
  }
  return json;
}

}  // namespace

std::string text_of(const Calibration& calibration) {
  OrderedJson json = {
      {"format", calibration_format},          {"version", calibration_version},
      {"origin", json_of(calibration.origin)}, {"launch_overheads", OrderedJson::array()},
      {"held_out", OrderedJson::array()},      {"kernels", OrderedJson::array()},
      {"transfers", OrderedJson::array()}};
  for (const LaunchOverhead& overhead : calibration.launch_overheads) {
    OrderedJson one = {{"ranks", overhead.ranks}};
    add_time(one, overhead.time);
    json["launch_overheads"].push_back(one);
  }
  for (const HeldOut& one : calibration.held_out) {
    json["held_out"].push_back({{"part", name_of(one.part)},
                                {"training", one.training},
                                {"measured_s", seconds(one.measured)},
                                {"predicted_s", seconds(one.predicted)}});
  }
  for (const KernelCurve& curve : calibration.kernels) {
    json["kernels"].push_back(json_of(curve));
  }
  for (const TransferCurve& curve : calibration.transfers) {
    json["transfers"].push_back(json_of(curve));
  }
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace lockstep
