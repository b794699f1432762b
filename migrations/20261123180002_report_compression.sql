-- The same for reports.
SELECT compress_with_lz4('adapter_reports', 'conditions', 'data');
