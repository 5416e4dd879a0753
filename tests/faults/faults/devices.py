# SPDX-License-Identifier: Apache-2.0
"""The faults of devices."""

from .fault import COMPILER, DEVICES, PLACING, Fault

FAULTS = [
    # Devices: their memory, and what the compiler places there.
    Fault("devices", "a free block of a device serves only storages of its own alignment", "object_heap.cc",
          "«free.alignment != storage->alignment» ||", "free.alignment < storage->alignment", DEVICES),
    Fault("devices", "a staged copy that was not done is not moved", "device_work.cc",
          "if («done») {", "true", DEVICES),
    Fault("devices", "a replay copies what the host had computed", "device_work.cc",
          "if (copies_[i].use == Use::kReads) «copies_[i].stream = nullptr;»", "", DEVICES),
    Fault("devices", "the end of a recording gives memory back", "vm_recording.cc",
          "heap.Unpin(recording.result.Release());\n  «work.LetGoRecorded();»\n}", "", DEVICES),
    Fault("devices", "a copy's memory stays the copy's own to the end of the run", "lives.cc",
          "if (!node.inputs[0]->on_device) «forever_.insert(node.inputs[0]);»", "", PLACING),
    Fault("place", "integers that vary with an input go to the device", "place_on_device.cc",
          "const bool fixed = «in_loop || !Varies(node.inputs)»;", "true", COMPILER),
    Fault("place", "integers that the host needs stay there", "place_on_device.cc",
          "(integers && (fixed || «needed_on_host_.contains(output)»));", "false", COMPILER),
    Fault("place", "what follows from shapes stays on the host that reads it", "place_on_device.cc",
          "if (shapes || («!Varies(node.inputs) && AllNeededOnHost(node)»)) {", "false", COMPILER),
    Fault("place", "a copy in a loop counts as several", "sides.cc",
          "loop ? «std::min(weight * kLoopWeight, kMostCopyWeight)» : weight;", "weight", PLACING),
    Fault("place", "what a branch or a loop gives is read on the side of its place", "sides.cc",
          "Read(*source, «SideOf(slot.output)»);", "kHostSide", PLACING),
    Fault("place", "a loop reads its condition on the host", "sides.cc",
          "if (loop) «Read(node->blocks[0].results[0], kHostSide);»", "", PLACING),
    Fault("place", "results of the model are read on the host", "sides.cc",
          "for (const Value* result : graph.main.results) «Read(result, kHostSide);»", "", PLACING),
    Fault("place", "a view does not read what it shows", "sides.cc",
          "for (std::size_t i = «view ? 1 : 0»; i < node->inputs.size(); ++i) Read", "0", PLACING),
    Fault("place", "a view lies where what it shows lies", "sides.cc",
          "const Vertex made = «node->kind == NodeKind::kReshape ? SideOf(node->inputs[0]) : side»;", "side", PLACING),
    Fault("place", "an arena holds tensors of its side alone", "arena.cc",
          "if («value->on_device != device_») return;\n    if (lives_", "false", PLACING),
    Fault("place", "copies to the other side take nothing of this one", "arena.cc",
          "if («value->on_device != device_» || !value->type.ranked) return;", "false", PLACING),
]
