#include "io/scenario/statements/statement_fields.hpp"

namespace lockstep {
namespace {

using Kind = StatementKind;

template <auto Member, class Form = FormOfMember<Member>>
Field<Statement> work_field(KeyRow row) {
  return part_field<&Statement::work, Member, Form>(row);
}

}  // namespace

std::vector<StatementRow> device_rows() {
  return {
      {Kind::wait,
       "name",
       {"name"},
       "c10d's `Work.wait()`: orders the current stream, with gloo also the host",
       {field<&Statement::name, NameForm>({"name", "required", "the pending result"})}},
      {Kind::wait_stream,
       "",
       {"stream", "on"},
       "`on` waits for all work queued on `stream`",
       {field<&Statement::stream, NameForm>({"stream", "required", "what to wait for"}),
        work_field<&DeviceWork::on, NameForm>({"on", "required", "the stream that waits"})}},
      {Kind::synchronize,
       "stream",
       {},
       "the host waits",
       {field<&Statement::stream, NameForm>({"stream", "the device", "what to wait for"})}},
      {Kind::item,
       "value",
       {"value"},
       "`.item()`, `.cpu()`, `.numpy()`: copy to the host and wait",
       {field<&Statement::expression>({"value", "required", "the value to copy"}),
        field<&Statement::result, NameForm>({"as", "", "the name of the copy"})}},
      {Kind::empty_cache, "", {}, "device synchronisation, cache returned", {}},
      {Kind::kernel,
       "time",
       {"time|flops|bytes"},
       "device work",
       {work_field<&DeviceWork::time>({"time", "", "duration"}),
        work_field<&DeviceWork::flops>({"flops", "", "number of floating point operations"}),
        work_field<&DeviceWork::bytes>({"bytes", "", "bytes of memory traffic"}),
        field<&Statement::stream, NameForm>({"stream", "compute", "the stream that it runs on"}),
        work_field<&DeviceWork::reads, NameForm>({"reads", "[]", "names of its inputs"}),
        work_field<&DeviceWork::writes, NameForm>({"writes", "[]", "names of its outputs"})}},
      {Kind::host,
       "time",
       {"time"},
       "host work",
       {work_field<&DeviceWork::time>({"time", "required", "duration"})}},
      {Kind::copy,
       "",
       {"tensor", "to"},
       "between devices, or device and host",
       {work_field<&DeviceWork::tensor>({"tensor", "required", "the value to copy"}),
        work_field<&DeviceWork::to>({"to", "required", "where to"}),
        work_field<&DeviceWork::non_blocking>({"non_blocking", "false", "the host does not wait"}),
        field<&Statement::stream, NameForm>({"stream", "compute", "the stream that it runs on"}),
        field<&Statement::result, NameForm>({"as", "replaces the data", "name of the copy"})}},
  };
}

}  // namespace lockstep
