"""Where one claim is false: the other claims that then have another verdict than where the paper is right."""

from __future__ import annotations

#: World -> claims. Most follow from the same run: the first pair of the base scale stands in seven tables.
FOLLOWS: dict[str, str] = {
    "ppl_gain_270m": "gain_every_paired_difference intervention_270m loss_gain_270m tokens_saved_270m",
    "loss_gain_270m": "gain_every_paired_difference intervention_270m ppl_gain_270m tokens_saved_270m",
    "control_270m": "intervention_270m",
    "intervention_270m": "control_270m",
    "tokens_saved_270m": "t9_intervention",
    "gain_every_paired_difference": "intervention_270m loss_gain_270m ppl_gain_270m tokens_saved_270m",
    "ppl_gain_0p7b": "loss_gain_0p7b tokens_saved_0p7b",
    "loss_gain_0p7b": "ppl_gain_0p7b tokens_saved_0p7b",
    "levels_0p7b": "ppl_gain_0p7b",
    "tokens_saved_0p7b": "",
    "mechanism_0p7b": "",
    "t2_piqa": "",
    "t2_hellaswag": "",
    "t2_arc_easy": "downstream_largest",
    "t2_arc_challenge": "",
    "t2_race": "downstream_largest downstream_mean",
    "t2_lambada": "downstream_largest downstream_mean downstream_wins",
    "t2_mmlu": "",
    "t2_mean": "downstream_largest downstream_mean",
    "downstream_mean": "downstream_largest t2_mean",
    "downstream_wins": "",
    "downstream_largest": "downstream_mean downstream_wins",
    "ablation_control": "",
    "ablation_intervention": "",
    "ablation_order": "ablation_control",
    "ablation_grows": "",
    "ablation_equivalent": "",
    "lower_routing_same": "readout_20pct",
    "sharp_crossing": (
        "dose_monotone entropy_3pct entropy_gain_relation entropy_order gated_logit_entropy readout_20pct "
        "rmsnorm_alone swiglu_suppressor t10_control t10_mult_0p25 t3_gpt t4_gpt t5_gelu_3840 t9_control "
        "t9_intervention"
    ),
    "entropy_3pct": (
        "dose_monotone entropy_gain_relation entropy_order gated_logit_entropy readout_20pct rmsnorm_alone "
        "sharp_crossing swiglu_suppressor t10_control t10_mult_0p25 t3_gpt t4_gpt t5_gelu_3840 t9_control "
        "t9_intervention"
    ),
    "logit_3pct": (
        "dose_monotone gated_logit_entropy logit_growth_suppressed rmsnorm_alone swiglu_suppressor t10_control "
        "t10_mult_0p25 t3_gpt t5_gelu_3840 t9_control t9_intervention"
    ),
    "entropy_order": "sharp_crossing",
    "logit_growth_suppressed": "",
    "singular_value": "",
    "t3_gpt": (
        "biasless_partial dose_ppl_saturates entropy_floor_gain entropy_floor_much_smaller entropy_gain_relation "
        "fixed_releases_keep_most gain_every_paired_difference gain_order llama_gain loss_gain_270m ppl_gain_270m "
        "release_order rmsnorm_alone selective_vs_global swiglu_suppressor t4_gpt t9_intervention tokens_saved_270m"
    ),
    "t3_gpt_rmsnorm": "entropy_gain_relation gain_order rmsnorm_alone",
    "t3_gpt_biasless": "biasless_partial entropy_gain_relation gain_order",
    "t3_gpt_swiglu": "gain_order geglu_at_least t4_gpt_swiglu",
    "t3_llama_layernorm": "gain_order",
    "t3_llama": "llama_gain",
    "llama_gain": "t3_llama",
    "gain_order": (
        "biasless_partial entropy_gain_relation geglu_at_least llama_gain rmsnorm_alone swiglu_suppressor "
        "t3_gpt_biasless t3_gpt_rmsnorm t3_gpt_swiglu t3_llama t4_gpt_geglu t4_gpt_swiglu"
    ),
    "rmsnorm_alone": "gain_order t3_gpt_rmsnorm",
    "biasless_partial": "gain_order t3_gpt_biasless",
    "swiglu_suppressor": "gain_order t3_gpt_swiglu t4_gpt_swiglu",
    "entropy_gain_relation": (
        "biasless_partial dose_ppl_saturates entropy_floor_gain entropy_floor_much_smaller gain_order geglu_at_least "
        "llama_gain loss_gain_270m ppl_gain_270m release_order rmsnorm_alone selective_vs_global swiglu_suppressor "
        "t3_gpt t3_gpt_biasless t3_gpt_rmsnorm t3_llama t4_gpt t4_gpt_geglu t9_intervention"
    ),
    "t4_gpt": (
        "biasless_partial dose_ppl_saturates entropy_floor_gain entropy_floor_much_smaller entropy_gain_relation "
        "fixed_releases_keep_most gain_every_paired_difference gain_order llama_gain loss_gain_270m ppl_gain_270m "
        "release_order rmsnorm_alone selective_vs_global swiglu_suppressor t3_gpt t9_intervention tokens_saved_270m"
    ),
    "t4_gpt_swiglu": "gain_order geglu_at_least t3_gpt_swiglu",
    "t4_gpt_geglu": "gain_order",
    "control_ppl_order": "",
    "geglu_at_least": "gain_order",
    "geglu_readout": "t4_gpt_geglu t5_geglu_2560",
    "t5_gelu_3840": (
        "entropy_3pct first_upper_reduction logit_3pct rmsnorm_alone t10_control t3_gpt t4_gpt t9_control "
        "write_reduction_3840"
    ),
    "t5_gelu_2560": "first_upper_reduction write_order write_reduction_2560",
    "t5_swiglu_2560": (
        "entropy_gain_relation first_upper_reduction gated_logit_entropy swiglu_suppressor t3_gpt_swiglu "
        "t4_gpt_swiglu write_order write_reduction_2560 write_reduction_3840"
    ),
    "t5_geglu_2560": (
        "entropy_gain_relation first_upper_reduction gated_logit_entropy geglu_readout t4_gpt_geglu "
        "write_reduction_2560 write_reduction_3840"
    ),
    "write_reduction_3840": "t5_gelu_3840 write_order",
    "write_reduction_2560": "t5_gelu_2560 write_order",
    "first_upper_reduction": "t5_gelu_3840",
    "write_order": "t5_gelu_2560 t5_gelu_3840 write_reduction_2560 write_reduction_3840",
    "gated_logit_entropy": "geglu_readout t5_geglu_2560 t5_gelu_2560",
    "entropy_floor_readout": "",
    "entropy_floor_gain": "",
    "entropy_floor_much_smaller": "entropy_floor_gain",
    "global_half_lr": "",
    "selective_vs_global": (
        "biasless_partial dose_ppl_saturates entropy_floor_gain entropy_floor_much_smaller entropy_gain_relation "
        "fixed_releases_keep_most gain_every_paired_difference gain_order intervention_270m llama_gain "
        "loss_gain_270m ppl_gain_270m release_order rmsnorm_alone swiglu_suppressor t3_gpt t4_gpt t9_intervention "
        "tokens_saved_270m"
    ),
    "readout_20pct": "",
    "t8_main": (
        "release_main release_window t8_higher_threshold t8_lower_threshold t8_no_patience t8_shorter_window "
        "t8_stricter_patience"
    ),
    "t8_lower_threshold": (
        "release_main release_window t8_higher_threshold t8_main t8_no_patience t8_shorter_window t8_stricter_patience"
    ),
    "t8_no_patience": (
        "release_main release_window t8_higher_threshold t8_lower_threshold t8_main t8_shorter_window "
        "t8_stricter_patience"
    ),
    "t8_stricter_patience": (
        "release_main release_window t8_higher_threshold t8_lower_threshold t8_main t8_no_patience t8_shorter_window"
    ),
    "t8_shorter_window": (
        "release_main release_window t8_higher_threshold t8_lower_threshold t8_main t8_no_patience t8_stricter_patience"
    ),
    "t8_higher_threshold": "release_window",
    "release_window": (
        "release_main t8_higher_threshold t8_lower_threshold t8_main t8_no_patience t8_shorter_window "
        "t8_stricter_patience"
    ),
    "release_main": (
        "release_window t8_higher_threshold t8_lower_threshold t8_main t8_no_patience t8_shorter_window "
        "t8_stricter_patience"
    ),
    "t9_control": (
        "biasless_partial control_270m entropy_3pct entropy_floor_gain entropy_floor_much_smaller "
        "entropy_gain_relation gated_logit_entropy global_half_lr logit_3pct loss_gain_270m ppl_gain_270m "
        "rmsnorm_alone selective_vs_global sharp_crossing swiglu_suppressor t10_control t3_gpt t4_gpt t5_gelu_3840 "
        "t9_fixed_3pct t9_fixed_6pct t9_intervention tokens_saved_270m"
    ),
    "t9_intervention": (
        "biasless_partial dose_ppl_saturates entropy_floor_gain entropy_floor_much_smaller entropy_gain_relation "
        "fixed_releases_keep_most gain_every_paired_difference gain_order llama_gain loss_gain_270m ppl_gain_270m "
        "release_order rmsnorm_alone selective_vs_global swiglu_suppressor t3_gpt t4_gpt tokens_saved_270m"
    ),
    "t9_fixed_3pct": "fixed_releases_keep_most release_order",
    "t9_fixed_6pct": "fixed_releases_keep_most release_order",
    "release_order": (
        "dose_ppl_saturates entropy_floor_gain entropy_floor_much_smaller entropy_gain_relation gain_order "
        "llama_gain loss_gain_270m ppl_gain_270m selective_vs_global swiglu_suppressor t3_gpt t4_gpt t9_fixed_3pct "
        "t9_fixed_6pct t9_intervention"
    ),
    "t10_control": (
        "biasless_partial control_270m entropy_3pct entropy_floor_gain entropy_floor_much_smaller global_half_lr "
        "logit_3pct loss_gain_270m ppl_gain_270m rmsnorm_alone selective_vs_global t3_gpt t4_gpt t5_gelu_3840 "
        "t9_control t9_fixed_3pct t9_fixed_6pct t9_intervention tokens_saved_270m"
    ),
    "t10_mult_0p5": "dose_monotone dose_ppl_saturates",
    "t10_mult_0p25": (
        "biasless_partial dose_monotone dose_ppl_saturates entropy_3pct entropy_floor_gain "
        "entropy_floor_much_smaller entropy_gain_relation fixed_releases_keep_most gain_every_paired_difference "
        "gain_order intervention_270m llama_gain logit_3pct loss_gain_270m ppl_gain_270m readout_20pct "
        "release_order rmsnorm_alone selective_vs_global sharp_crossing swiglu_suppressor t3_gpt t4_gpt "
        "t9_intervention tokens_saved_270m"
    ),
    "t10_mult_0p125": "dose_monotone dose_ppl_saturates",
    "dose_monotone": "t10_mult_0p125",
    "dose_ppl_saturates": "",
    "locality": "",
    "locality_order": "locality",
    "immature_energy": "",
    "fixed_releases_keep_most": "t9_fixed_6pct",
}
